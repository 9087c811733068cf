"""A model of two inputs, of which a loop casts one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Conv2d(1, 4, 3)
        self.meta = nn.Linear(3, 4)

    def forward(self, image, meta):
        return self.image(image).mean((2, 3)) + self.meta(meta)


def run(device):
    torch.manual_seed(0)
    model = Fused().to(device, torch.bfloat16)
    loader = DataLoader(TensorDataset(torch.rand(4, 1, 6, 6), torch.rand(4, 3)), batch_size=2)
    total = 0.0
    for image, meta in loader:
        image = image.to(device, torch.bfloat16)
        meta = meta.to(device)
        total += model(image, meta).float().sum().item()
    return total
