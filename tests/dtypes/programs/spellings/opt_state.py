# stale-copy, opt.state[net.weight]["exp_avg"], float32
import torch
from torch import nn


def step(net, opt, x):
    opt.zero_grad()
    loss = net(x).float().square().mean()
    loss.backward()
    opt.step()  # born and failed
    return loss.item()


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    step(net, opt, torch.randn(4, 3))
    net.to(torch.bfloat16)
    return step(net, opt, torch.randn(4, 3).bfloat16())
