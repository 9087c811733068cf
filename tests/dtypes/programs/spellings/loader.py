# numpy-boundary, xb, float64
import torch
import torch.nn.functional as F
from torch import nn
import numpy as np
from torch.utils.data import Dataset, DataLoader


class Waves(Dataset):
    def __init__(self):
        self.base = np.linspace(0, 1, 6)
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return np.sin(i * self.base), i % 2


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    total = 0.0
    for xb, yb in DataLoader(Waves(), batch_size=4):  # born
        loss = F.cross_entropy(model(xb), yb)  # failed
        total += loss.item()
    return total
