"""A learning rate finder that looks at every gradient, and at every loss."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    rates, losses, steepness = [], [], []
    for x, y in zip(torch.rand(15, 16, 8, device=device), torch.randint(0, 3, (15, 16), device=device)):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        steepness.append([parameter.grad.abs().max().item() for parameter in net.parameters()])  # 1
        #1> steepness.append(torch.stack([parameter.grad.abs().max() for parameter in net.parameters()]))
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        losses.append(loss.item())  # 2
        for group in optimizer.param_groups:
            group["lr"] *= 1.5
    #1> steepness = torch.stack(steepness).tolist()
    return rates, losses, steepness
