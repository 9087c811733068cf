"""Weights in bfloat16 that are updated in float32 and rounded at random, by their bits."""
import torch
from torch import nn


def add_stochastic(p, update):
    exact = p.float() + update.float()
    bits = exact.view(torch.int32)
    bits = bits + torch.randint_like(bits, 0, 1 << 16)
    p.copy_((bits & -65536).view(torch.float32))


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(6, 6).to(device, torch.bfloat16)
    moments = {p: torch.zeros_like(p, dtype=torch.float32) for p in net.parameters()}
    for _ in range(6):
        net.zero_grad()
        net(torch.randn(4, 6, device=device).bfloat16()).float().square().mean().backward()
        with torch.no_grad():
            for p, m in moments.items():
                m.mul_(0.9).add_(p.grad.float(), alpha=0.1)
                add_stochastic(p, -0.1 * m)
    return net.weight.float().sum().item()
