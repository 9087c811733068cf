import torch
from torch import nn


class Triplets(torch.utils.data.Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 3, 6)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i, 0], self.x[i, 1], self.x[i, 2]


class Trainer:
    def __init__(self, net, device):
        self.device = device
        self.net = net.to(device)
        self.margin = torch.full((1,), 0.5)
        self.history = []

    def step(self, anchor, positive, negative):
        a, p = self.net(anchor.to(self.device)), self.net(positive.to(self.device))
        n = self.net(negative)
        distance = (a - p).norm(dim=1) - (a - n).norm(dim=1)
        return torch.relu(distance + self.margin).mean()

    def fit(self, loader):
        for batch in loader:
            loss = self.step(*batch)
            loss.backward()
            self.history.append(loss.detach())


def run(device):
    trainer = Trainer(nn.Sequential(nn.Linear(6, 4), nn.ReLU()), device)
    trainer.fit(torch.utils.data.DataLoader(Triplets(8), batch_size=4))
