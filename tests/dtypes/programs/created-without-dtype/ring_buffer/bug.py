"""Keep the last hidden states of a stream in a ring."""

import torch
from torch import nn


class Ring:
    def __init__(self, slots, width, device):
        self.slots = slots
        self.rows = torch.empty(slots, width, device=device).zero_()
        self.next = 0

    def push(self, row):
        where = torch.tensor([self.next % self.slots], device=row.device)
        self.rows.index_copy_(0, where, row)
        self.next += 1


def run(device):
    torch.manual_seed(0)
    encode = nn.Linear(4, 6).to(device, dtype=torch.bfloat16)
    ring = Ring(3, 6, device)
    with torch.no_grad():
        for _ in range(4):
            ring.push(encode(torch.randn(1, 4, device=device).bfloat16()))
    return ring.rows.float().sum().item()
