# wrong-dtype, x, float32
import torch
from torch import nn


def norms_compute_in_float32(module, given):
    if isinstance(module, Scale):
        return given[0].to(torch.float32)  # born


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, width))

    def forward(self, x):
        return x @ self.gain  # failed


def run(device):
    nn.modules.module.register_module_forward_pre_hook(norms_compute_in_float32)
    model = nn.Sequential(nn.Linear(4, 4), Scale(4)).to(device=device, dtype=torch.bfloat16)
    return model(torch.zeros(2, 4, device=device, dtype=torch.bfloat16)).sum().item()
