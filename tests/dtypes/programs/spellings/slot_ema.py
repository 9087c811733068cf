# stale-copy, ema.shadow["0.weight"], float32
import torch
from torch import nn


class Ema:
    __slots__ = ("shadow",)
    def __init__(self, net):
        self.shadow = {k: v.detach().clone() for k, v in net.named_parameters()}  # born
    @torch.no_grad()
    def update(self, net):
        for k, v in net.named_parameters():
            self.shadow[k].lerp_(v, 0.1)  # failed


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    ema = Ema(net)
    net.double()
    ema.update(net)
    return float(sum(v.sum() for v in ema.shadow.values()))
