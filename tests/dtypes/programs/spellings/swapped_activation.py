# attached-after-cast, model.act.weight, float32
import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.act, self.b = nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)
    def forward(self, x):
        return self.b(self.act(self.a(x)))  # failed


def swap_activations(model):
    for name, child in model.named_children():
        if isinstance(child, nn.ReLU):
            setattr(model, name, nn.PReLU())  # born


def run(device):
    torch.manual_seed(0)
    model = Mlp().to(torch.bfloat16)
    swap_activations(model)
    return model(torch.randn(3, 4, dtype=torch.bfloat16)).float().sum().item()
