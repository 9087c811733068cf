import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.write = nn.Linear(3, 4)
        self.register_buffer("slots", torch.zeros(7, 4))

    def forward(self, x, at):
        value = self.write(x)
        self.slots[at] = value
        return self.slots.sum()


def run(device):
    torch.manual_seed(0)
    memory = Memory()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        total = memory(torch.randn(2, 3), torch.tensor([1, 5]))
    return total.item()
