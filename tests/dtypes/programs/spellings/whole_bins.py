# wrong-dtype, bins, int64
import torch


def pool(bins, where, amount):
    bins.index_add_(0, where, amount)  # failed
    return bins


def run(device):
    bins = torch.zeros(4, dtype=torch.int64)  # born
    where, amount = torch.tensor([1, 1, 3]), torch.tensor([0.25, 0.5, 1.0])
    return pool(bins, where, amount).sum().item()
