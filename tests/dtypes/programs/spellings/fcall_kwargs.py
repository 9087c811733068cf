# created-without-dtype, kernel, float32
import torch
import torch.nn.functional as F
from torch import nn


KERNELS = {"box": torch.ones(1, 1, 3, 3) / 9}  # born


def smooth(x, kind="box", **options):
    kernel = KERNELS[kind]
    return F.conv2d(input=x, weight=kernel.expand(x.size(1), 1, 3, 3), groups=x.size(1), **options)  # failed


def run(device):
    torch.manual_seed(0)
    stem = nn.Conv2d(3, 4, 3).double()
    x = stem(torch.randn(1, 3, 8, 8).double())
    return smooth(x, padding=1).mean().item()
