import torch
from torch import nn


def make_loss(weights, smoothing):
    weights = torch.tensor(weights)
    uniform = torch.full((len(weights),), smoothing / len(weights))

    def loss(logits, target):
        logp = torch.log_softmax(logits, -1)
        hot = nn.functional.one_hot(target, len(weights)).float()
        soft = hot * (1 - smoothing) + uniform
        return -(soft * logp * weights).sum(-1).mean()

    return loss


def run(device):
    model = nn.Linear(6, 3).to(device)
    criterion = make_loss([1.0, 2.0, 0.5], 0.1)
    x = torch.randn(8, 6).to(device)
    y = torch.randint(0, 3, (8,)).to(device)
    for _ in range(2):
        criterion(model(x), y).backward()
