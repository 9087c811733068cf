# created-without-dtype, noise, float32
import torch
from torch import nn


def add_noise(layer, inputs):
    noise = torch.randn(inputs[0].shape)  # born
    return inputs[0] + noise * 0.1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 1)
        self.b.register_forward_pre_hook(add_noise)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))  # failed


def run(device):
    net = Net().half()
    return net(torch.ones(2, 4).half()).float().sum().item()
