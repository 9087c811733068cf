"""Evaluation of a segmentation: two counts for each class and batch, and the same mean for each image."""

import torch
from torch import nn

CLASSES = 3


@torch.no_grad()
def run(device):
    torch.manual_seed(0)
    segment = nn.Linear(4, CLASSES).to(device).eval()
    mean = torch.rand(4)
    inter, union = [0] * CLASSES, [0] * CLASSES
    images, masks = torch.rand(12, 2, 25, 4), torch.randint(0, CLASSES, (12, 2, 25))
    for image, mask in zip(images.to(device), masks.to(device)):
        pred = segment(image - mean.to(device)).argmax(-1)  # 2
        for c in range(CLASSES):
            inter[c] += ((pred == c) & (mask == c)).sum().item()  # 1
            #1> inter[c] += ((pred == c) & (mask == c)).sum().detach()
            union[c] += ((pred == c) | (mask == c)).sum()
    return [int(a) / int(b) for a, b in zip(inter, union)]
