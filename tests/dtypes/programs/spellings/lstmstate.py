# wrong-dtype, h0, float64
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 5, batch_first=True)
    def start(self, x):
        return torch.zeros(1, len(x), 5).double()  # born
    def forward(self, x):
        h0 = self.start(x)
        out, _ = self.rnn(x, h0)  # failed
        return out[:, -1]


def run(device):
    torch.manual_seed(0)
    return Model()(torch.randn(2, 4, 3)).sum().item()
