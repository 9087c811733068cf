import torch
from torch import nn


def batches(data, targets, size):
    order = torch.randperm(len(data))
    for start in range(0, len(data), size):
        pick = order[start : start + size]
        yield data[pick], targets[pick]


def run(device):
    data, targets = torch.randn(20, 6), torch.randn(20, 1)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        total = 0.0
        for inputs, wanted in batches(data, targets, 5):
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = (outputs - wanted).pow(2).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
