# created-without-dtype, h, float32
import torch
from torch import nn


class Walk(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.cell = width, nn.LSTMCell(width, width)

    def forward(self, steps):
        h, c = torch.zeros(steps.shape[0], self.width), torch.zeros(steps.shape[0], self.width)  # born
        for step in steps.unbind(1):
            h, c = self.cell(step, (h, c))  # failed
        return h


def run(device):
    torch.manual_seed(0)
    return Walk(4).double()(torch.rand(2, 3, 4, dtype=torch.float64)).sum().item()
