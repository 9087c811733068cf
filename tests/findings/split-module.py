"""The program moves a layer's weight and forgets its bias. `forward` hides this, because it copies the bias."""

import torch
from torch import nn

import devtrace


class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return x @ self.weight + self.bias.to(x.device)


def report():
    with devtrace.record("cuda:1") as recording:
        late = Late()
        late.weight = nn.Parameter(late.weight.detach().to("cuda:0"))
        late(torch.rand(2, 4, device="cuda:0"))
    return recording.report
