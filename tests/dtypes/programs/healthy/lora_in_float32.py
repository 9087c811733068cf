"""Adapters in float32 on a frozen bfloat16 model: each casts its input up and its result down."""
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        change = self.up(self.down(x.to(self.down.weight.dtype)))
        return self.base(x) + change.to(x.dtype)


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(torch.bfloat16)
    model[0], model[2] = Adapter(model[0]), Adapter(model[2])
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(3):
        loss = model(torch.randn(5, 4).bfloat16()).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
