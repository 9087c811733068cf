"""A temperature is a tensor on the CPU in a model that is compiled with CUDA graphs."""

import torch
from torch import nn

import devtrace


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.temperature = torch.tensor(0.7)

    def forward(self, x):
        return torch.softmax(self.layer(x) / self.temperature, -1)


def report():
    with devtrace.record(simulate="cuda:1") as recording:
        model = Classifier().to("cuda")
        fast = torch.compile(model, mode="reduce-overhead")
        for _ in range(20):
            fast(torch.ones(2, 4, device="cuda"))
    return recording.report
