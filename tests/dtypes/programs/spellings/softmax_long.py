# target-dtype, votes, int64
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    picks = torch.randint(0, 4, (20,))
    votes = torch.bincount(picks, minlength=4)  # born
    share = votes.softmax(0)  # failed
    return share.max().item()
