# wrong-dtype, totals, int64
import torch


def tally(ids, weights, n):
    totals = torch.zeros(n, dtype=torch.long)  # born
    totals.scatter_add_(0, ids, weights)  # failed
    return totals


def run(device):
    ids = torch.tensor([0, 2, 2])
    weights = torch.tensor([0.5, 1.5, 2.0])
    return float(tally(ids, weights, 3).sum())
