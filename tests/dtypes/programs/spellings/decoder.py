# wrong-dtype, z, float16
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    decoder = nn.Linear(3, 4)
    encoder.half()
    x = torch.randn(5, 4).half()
    z = encoder(x)  # born
    y = decoder(z)  # failed
    return y.float().mean().item()
