# wrong-dtype, output.type(torch.float32), float32
import torch
from torch import nn


def cut(module, inputs, output):
    return output.type(torch.float32)  # born


def run(device):
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    net[1].register_forward_hook(cut)
    rows = torch.ones(2, 4)
    return net(rows.double()).sum().item()  # failed
