# target-dtype, y, int64
import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    x = torch.randn(9, 3)
    y = torch.randint(0, 2, (9,))  # born
    model = nn.Linear(3, 1)
    loss = F.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)  # failed
    loss.backward()
    return loss.item()
