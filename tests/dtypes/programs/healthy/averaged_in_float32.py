"""Averaged weights and a cache of keys, each in the dtype that it was meant to have."""
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    model = nn.Linear(4, 4).bfloat16()
    average = {name: p.detach().float() for name, p in model.named_parameters()}
    cache = torch.zeros(2, 6, 4, dtype=model.weight.dtype)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    with torch.no_grad():
        for step in range(3):
            cache[:, step] = model(torch.randn(2, 4).bfloat16())
            for name, p in model.named_parameters():
                average[name].lerp_(p.float(), 0.1)
        scores = (cache @ cache.mT).float().masked_fill(~mask, float("-inf"))
        mixed = scores.softmax(-1).to(cache.dtype) @ cache
    return mixed.float().sum().item() + sum(each.sum().item() for each in average.values())
