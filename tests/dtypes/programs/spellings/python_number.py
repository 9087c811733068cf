# python-number, scores, float16
import torch
from torch import nn


NEG = -1e30


def causal(scores):
    n = scores.size(-1)
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
    return scores.masked_fill_(hidden, value=NEG)  # failed


def run(device):
    torch.manual_seed(0)
    q, k = torch.randn(2, 4, 6).half(), torch.randn(2, 4, 6).half()
    scores = q @ k.mT  # born
    return causal(scores).softmax(-1).float().sum().item()
