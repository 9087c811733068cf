# wrong-dtype, h, float16
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    text, decoder = nn.Linear(6, 6).half(), nn.Linear(6, 2)
    tokens = torch.randn(2, 6).half()
    h = text(tokens)  # born
    return decoder(h).sum().item()  # failed
