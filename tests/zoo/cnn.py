"""A convolutional network on images from a DataLoader; the loss is read once an epoch."""

import torch
import torch.nn.functional as F
from torch import nn


from torch.utils.data import DataLoader, TensorDataset


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(36, 3)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def run(device):
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.rand(48, 1, 8, 8), torch.randint(0, 3, (48,))), batch_size=4, shuffle=True)
    net = Cnn().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        total = torch.zeros((), device=device)
        for x, y in loader:
            loss = F.cross_entropy(net(x.to(device)), y.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        total.item()
