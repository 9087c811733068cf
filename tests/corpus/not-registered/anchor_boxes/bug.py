"""A detector head whose anchors come from its base class."""
import torch
import torch.nn as nn


class GridHead(nn.Module):
    stride = 4

    def __init__(self, cells):
        super().__init__()
        ys, xs = torch.meshgrid(torch.arange(cells), torch.arange(cells), indexing="ij")
        self.grid = torch.stack([xs, ys], -1).float().view(1, -1, 2)


class BoxHead(GridHead):
    def __init__(self, cells, width):
        super().__init__(cells)
        self.box = nn.Linear(width, 2)

    def forward(self, feats):
        offset = self.box(feats).sigmoid()
        return (offset + self.grid) * self.stride


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        self.heads = nn.ModuleDict({"box": BoxHead(4, 8)})

    def forward(self, pixels):
        return self.heads["box"](self.body(pixels))


def run(device):
    torch.manual_seed(0)
    detector = Detector().to(device)
    boxes = detector(torch.rand(2, 16, 3, device=device))
    return boxes.mean().item()
