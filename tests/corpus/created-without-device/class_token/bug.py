"""Prepend padding rows so that ragged sequences line up."""
import torch
import torch.nn as nn


class Packer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)
        self.width = width

    def pad(self, rows, longest):
        fill = [torch.zeros(longest - len(r), self.width) for r in rows]
        return torch.stack(
            [
                torch.cat([r, f])
                for r, f in zip(rows, fill)
            ]
        )

    def forward(self, rows):
        longest = max(len(r) for r in rows)
        return self.proj(self.pad(rows, longest)).mean()


def run(device):
    torch.manual_seed(0)
    packer = Packer(4).to(device)
    rows = [torch.randn(n, 4, device=device) for n in (3, 5, 2)]
    return packer(rows).item()
