# created-without-dtype, output + torch.full(output.shape[-1:], 0.01), float32
import torch
from torch import nn


def jitter(module, inputs, output):
    return output + torch.full(output.shape[-1:], 0.01)  # born


def run(device):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).bfloat16()
    net[0].register_forward_hook(jitter)
    return net(torch.ones(2, 4).bfloat16()).float().sum().item()  # failed
