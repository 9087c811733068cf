"""FairTorch 0.1.1: the constraint's matrices are plain attributes of a loss that has no parameters."""

import torch
from fairtorch import DemographicParityLoss
from torch import nn


def run(device):
    torch.manual_seed(0)
    model = nn.Linear(5, 1).to(device)
    fairness = DemographicParityLoss(sensitive_classes=[0, 1]).to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x, y = torch.randn(8, 5).to(device), torch.ones(8, 1).to(device)
        group = torch.tensor([0, 1] * 4).to(device)
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y) + fairness(x, out, group)
        loss.backward()
        optimizer.step()
