# wrong-dtype, args[0].float(), float32
import torch
from torch import nn


def stable(module, args):
    return (args[0].float(),)  # born


def run(device):
    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 2)).to(torch.bfloat16)
    model[2].register_forward_pre_hook(stable)
    batch = torch.randn(3, 5, dtype=torch.bfloat16)
    return model(batch).float().mean().item()  # failed
