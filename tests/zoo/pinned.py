"""A DataLoader that pins, copies that do not block."""

import torch
import torch.nn.functional as F
from torch import nn


from torch.utils.data import DataLoader, TensorDataset


def run(device):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(40, 5), torch.randn(40, 1))
    loader = DataLoader(data, batch_size=4, pin_memory=True)
    net = nn.Linear(5, 1).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = F.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
