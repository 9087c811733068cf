# target-dtype, yb, float32
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(model, loader, criterion):
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    total = 0.0
    for xb, yb in loader:
        opt.zero_grad()
        loss = criterion(model(xb), yb)  # failed
        loss.backward()
        opt.step()
        total += loss.item()
    return total


def run(device):
    torch.manual_seed(0)
    table = torch.cat([torch.randn(8, 3), torch.randint(0, 2, (8, 1)).float()], dim=1)  # born
    ds = TensorDataset(table[:, :3], table[:, 3])
    model = nn.Linear(3, 2)
    return fit(model, DataLoader(ds, batch_size=4), nn.CrossEntropyLoss())
