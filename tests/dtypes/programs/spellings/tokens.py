# target-dtype, tokens, float32
import torch
from torch import nn


def encode(lines):
    ids = torch.zeros(len(lines), 6)  # born
    for i, line in enumerate(lines):
        ids[i, :len(line)] = torch.tensor([ord(c) - 96 for c in line])
    return ids


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 4)
    def forward(self, tokens):
        return self.embed(tokens).mean(1)  # failed


def run(device):
    torch.manual_seed(0)
    tokens = encode(["abc", "hello"])
    return Bag()(tokens).sum().item()
