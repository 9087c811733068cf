# wrong-dtype, pooled, float32
import torch
from torch import nn


class Tap:
    def __init__(self, layer):
        self.kept = []
        self.handle = layer.register_forward_hook(self.on_forward)

    def on_forward(self, layer, args, feats):
        feats = feats.float()
        self.kept.append(feats.detach())
        return feats


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 1)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        pooled = self.conv(x).mean(-1)  # born
        return self.fc(pooled)  # failed


def run(device):
    head = Head().bfloat16()
    tap = Tap(head.conv)
    return head(torch.ones(2, 3, 5).bfloat16()).float().sum().item() + len(tap.kept)
