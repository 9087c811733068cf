# wrong-dtype, x, float32
import torch
from torch import nn


class Probe:
    def __init__(self):
        self.last = None

    def __call__(self, module, inputs, out):
        seen = out.to(torch.float32)  # born
        self.last = seen.mean()
        return seen


def run(device):
    probe = Probe()
    body = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 1)]).to(torch.bfloat16)
    body[0].register_forward_hook(probe)
    x = torch.ones(2, 3, dtype=torch.bfloat16)
    for layer in body:
        x = layer(x)  # failed
    return x.float().sum().item() + probe.last.item()
