# created-without-dtype, memory.bank, float32
import torch
from torch import nn


BANKS = {}


def register(name):
    def put(cls):
        BANKS[name] = cls
        return cls
    return put


@register("ring")
class Ring:
    def __init__(self, size, width):
        self.bank = torch.empty(size, width).zero_()  # born
        self.at = 0
    def push(self, keys):
        where = (torch.arange(len(keys)) + self.at) % len(self.bank)
        self.bank[where] = keys  # failed
        self.at += len(keys)
        return self.bank.float().sum()


def run(device):
    torch.manual_seed(0)
    enc = nn.Linear(3, 4).bfloat16()
    memory = BANKS["ring"](6, 4)
    with torch.no_grad():
        return memory.push(enc(torch.randn(2, 3).bfloat16())).item()
