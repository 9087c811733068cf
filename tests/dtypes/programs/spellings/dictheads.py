# not-registered, model.heads["a"].weight, float32
import torch
from torch import nn


class Multi(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.heads = {"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)}  # born
    def forward(self, x, task):
        hidden = torch.tanh(self.body(x))
        return self.heads[task](hidden)  # failed


def run(device):
    torch.manual_seed(0)
    model = Multi().to(torch.float16)
    x = torch.randn(5, 4).to(torch.float16)
    return model(x, "a").float().sum().item()
