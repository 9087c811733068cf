# numpy-boundary, x, float64
import torch
from torch import nn
import numpy as np


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 5, batch_first=True)
        self.out = nn.Linear(5, 1)
    def forward(self, x):
        states, _ = self.rnn(x)  # failed
        return self.out(states[:, -1])


def windows(n):
    values = np.cumsum(np.ones((n, 12)) * 0.1, axis=1)
    return torch.from_numpy(values)[:, :, None]  # born


def run(device):
    torch.manual_seed(0)
    model = Forecast()
    x = windows(4)
    return model(x).sum().item()
