# created-without-dtype, init[0], float32
import torch
from torch import nn


def initial(n):
    zeros = torch.zeros(1, n, 4)  # born
    return (zeros, zeros.clone())


def run(device):
    torch.manual_seed(0)
    rnn = nn.LSTM(3, 4, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    init = initial(2)
    out, _ = rnn(x, init)  # failed
    return out.sum().item()
