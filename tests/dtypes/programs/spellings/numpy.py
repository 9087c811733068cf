# target-dtype, vectors, bfloat16
import torch
from torch import nn
import numpy as np


def index(vectors):
    table = vectors.numpy()  # failed
    return float(np.linalg.norm(table))


@torch.no_grad()
def run(device):
    torch.manual_seed(0)
    model = nn.Linear(5, 3).to(torch.bfloat16)
    vectors = model(torch.randn(4, 5).to(torch.bfloat16))  # born
    return index(vectors)
