"""Detections come to the CPU once an image, where overlapping boxes are left out one by one."""

import torch
from torch import nn


def overlap(a, b):
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    inner = width * height
    return inner / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner)


@torch.no_grad()
def run(device):
    torch.manual_seed(0)
    head = nn.Linear(16, 5 * 20).to(device).eval()
    anchors = torch.rand(20, 2, device=device)
    images = torch.rand(10, 16)
    found = []
    for image in images:
        out = head(image.to(device)).view(20, 5)
        corners = torch.cat([anchors, anchors + out[:, 2:4].exp()], 1)
        scores, order = out[:, 4].sigmoid().sort(descending=True)
        detections = torch.cat([corners[order], scores[:, None]], 1).cpu()
        kept = []
        for row in detections:
            if row[4] < 0.4:
                break
            if all(overlap(row[:4].tolist(), other[:4].tolist()) < 0.5 for other in kept):
                kept.append(row)
        found.append(len(kept))
    return found
