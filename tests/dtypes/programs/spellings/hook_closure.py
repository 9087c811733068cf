# never-cast, x, float32
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))  # failed


def steer(vector, strength):
    def hook(module, args, output):
        return output + strength * vector  # born

    return hook


def run(device):
    torch.manual_seed(1)
    model = nn.Sequential(Block(4), Block(4)).to(torch.bfloat16)
    direction = torch.randn(4)
    model[0].register_forward_hook(steer(direction, 2.0))
    tokens = torch.randn(2, 4).to(torch.bfloat16)
    return model(tokens).float().sum().item()
