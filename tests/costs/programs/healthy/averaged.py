"""Evaluation with a meter: sums stay tensors until the epoch is over, and predictions are copied batch by batch."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total = self.total + value.detach() * n
        self.count += n

    @property
    def average(self):
        return float(self.total) / self.count


@torch.no_grad()
def evaluated(net, batches, device):
    loss, right, answers = Meter(), Meter(), []
    net.eval()
    for x, y in batches:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        out = net(x)
        loss.update(nn.functional.cross_entropy(out, y), len(x))
        right.update((out.argmax(1) == y).float().mean(), len(x))
        answers.append(out.softmax(1).cpu())
    return loss.average, right.average, torch.cat(answers)


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 3)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    data = [(torch.rand(16, 6), torch.randint(0, 3, (16,))) for _ in range(12)]
    best = 9e9
    for _ in range(3):
        net.train()
        for x, y in data:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
            optimizer.step()
        loss, _, answers = evaluated(net, data, device)
        if loss < best:
            best, kept = loss, {name: value.cpu() for name, value in net.state_dict().items()}
    return len(kept), answers.shape
