import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


def evaluate(tower, questions, documents):
    with torch.no_grad(), torch.amp.autocast(device_type="cpu", dtype=torch.bfloat16):
        asked = tower(questions)
    scores = asked @ documents.T
    best = scores.argmax(dim=1)
    return best.float().mean().item()


def run(device):
    torch.manual_seed(0)
    return evaluate(Tower(6), torch.randn(3, 6), torch.randn(9, 6))
