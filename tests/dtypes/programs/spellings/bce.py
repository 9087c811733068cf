# numpy-boundary, y, float64
import torch
from torch import nn
import numpy as np


def load():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 3)).astype("float32")
    labels = (features.sum(1) > 0).astype(float)
    return torch.from_numpy(features), torch.tensor(labels)  # born


def run(device):
    torch.manual_seed(0)
    x, y = load()
    model = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())
    guess = model(x).squeeze(1)
    loss = nn.BCELoss()(guess, y)  # failed
    loss.backward()
    return loss.item()
