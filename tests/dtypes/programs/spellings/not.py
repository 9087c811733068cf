# target-dtype, done, bool
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    reward, after = torch.rand(4), torch.rand(4)
    done = torch.tensor([True, False, False, True])  # born
    goal = reward + 0.9 * (1 - done) * after  # failed
    return goal.sum().item()
