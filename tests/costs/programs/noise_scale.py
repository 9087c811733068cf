"""The norm of each gradient is read to follow their noise, and the loss is kept by epoch and batch."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    noise, kept = [], {}
    for epoch in range(3):
        for number, batch in enumerate(torch.rand(6, 10, 6, device=device)):
            opt.zero_grad()
            loss = (net(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            for weight in net.parameters():
                noise.append(weight.grad.norm().item())  # 1
            opt.step()
            kept[epoch, number] = loss.item()  # 2
            #2> kept[epoch, number] = loss.detach()
    #2> kept = dict(zip(kept, torch.stack([*kept.values()]).tolist()))
    return noise, list(kept.values())
