"""A script that makes the accelerator its default device."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def run(device):
    torch.manual_seed(0)
    torch.set_default_device(device)
    try:
        model = nn.Linear(4, 2)
        data = TensorDataset(torch.randn(12, 4), torch.randn(12, 2))
        loader = DataLoader(data, batch_size=4, shuffle=True)
        total = torch.zeros(())
        for x, y in loader:
            total = total + (model(x) - y).square().mean()
        return total.item()
    finally:
        torch.set_default_device("cpu")
