"""Train on the hard examples of each batch only."""
import torch
import torch.nn.functional as F
from torch import nn


def hard_loss(logits, target, margin=0.1):
    each = F.mse_loss(logits, target, reduction="none")
    return each[each > margin].sum() / each.numel()


def train(net, steps, device):
    opt = torch.optim.Adam(net.parameters())
    x, y = torch.randn(16, 3, device=device), torch.randn(16, 1, device=device) + 2
    for _ in range(steps):
        loss = hard_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def run(device):
    torch.manual_seed(0)
    return train(nn.Linear(3, 1).to(device), 10, device).item()
