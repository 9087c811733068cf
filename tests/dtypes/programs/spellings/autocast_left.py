# autocast-off, feats, bfloat16
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 6), nn.GELU(), nn.Linear(6, 6))
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        return self.net(x)  # born


def predict(backbone, heads, task, x):
    feats = backbone(x)
    return heads[task](feats)  # failed


def run(device):
    torch.manual_seed(0)
    heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3)})
    return predict(Backbone(), heads, "b", torch.randn(4, 3)).sum().item()
