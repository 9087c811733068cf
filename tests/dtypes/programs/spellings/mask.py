# target-dtype, mask, float32
import torch
from torch import nn


def pad_mask(lengths, most):
    mask = torch.ones(len(lengths), most)  # born
    for row, n in zip(mask, lengths):
        row[:n] = 0
    return mask


def run(device):
    torch.manual_seed(0)
    scores = torch.randn(3, 5)
    mask = pad_mask([2, 5, 4], 5)
    scores = scores.masked_fill(mask, -100.0)  # failed
    return scores.softmax(-1).max().item()
