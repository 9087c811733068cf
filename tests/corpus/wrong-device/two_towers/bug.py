"""Two towers on two devices; the scores meet on the second."""
import torch
import torch.nn.functional as F
from torch import nn


class Towers(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = a, b
        self.left = nn.Linear(6, 4).to(a)
        self.right = nn.Linear(6, 4).to(b)

    def forward(self, users, items):
        u = self.left(users.to(self.a))
        v = self.right(items.to(self.b))
        return u.to(self.b) @ v.T


def run(device, second):
    torch.manual_seed(0)
    towers = Towers(device, second)
    opt = torch.optim.SGD(towers.parameters(), lr=0.1)
    for _ in range(2):
        users, items = torch.randn(5, 6), torch.randn(5, 6)
        labels = torch.arange(5).to(device)
        loss = F.cross_entropy(towers(users, items), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
