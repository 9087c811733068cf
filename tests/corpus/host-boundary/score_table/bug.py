"""Collect predictions in dicts, then build a numpy table."""
import numpy as np
import torch
import torch.nn as nn


def predict(net, loader, device):
    rows = []
    with torch.inference_mode():
        for i, x in enumerate(loader):
            rows.append({"id": i, "score": net(x.to(device)).sigmoid()})
    return rows


def table(rows):
    key = lambda row: row["id"]
    return np.stack([row["score"].numpy() for row in sorted(rows, key=key)])


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(3, 1).to(device)
    rows = predict(net, [torch.randn(2, 3) for _ in range(3)], device)
    return float(table(rows).mean())
