# wrong-dtype, x, float32
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)  # failed
        return y, y.abs().mean()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x, stat = layer(x)
        return x


def clean(module, args, out):
    hidden = out[0].float().nan_to_num()  # born
    return hidden, out[1]


def run(device):
    model = Model().bfloat16()
    model.layers[1].register_forward_hook(clean)
    return model(torch.ones(2, 4).bfloat16()).float().sum().item()
