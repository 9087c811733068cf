"""kornia 0.6.9 keeps the coefficients of a jitter in a buffer that nobody moves (mended in 0.6.10)."""

import torch
from kornia import augmentation


def run(device):
    torch.manual_seed(0)
    brighten = augmentation.RandomPlanckianJitter(mode="blackbody", p=1.0)
    return brighten(torch.rand(4, 3, 8, 8).to(device))
