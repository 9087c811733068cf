"""Batched inference; predictions come to the host for numpy."""

import torch
import torch.nn.functional as F
from torch import nn


import numpy as np


@torch.inference_mode()
def predict(net, batches, device):
    return np.concatenate([net(x.to(device)).softmax(-1).cpu().numpy() for x in batches])


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval().to(device)
    return predict(net, [torch.randn(6, 4) for _ in range(12)], device).shape
