"""pytorch-msssim: the windows of its losses are no buffers, so that `to` leaves them on the CPU."""

import torch
from pytorch_msssim import MS_SSIM, SSIM, ssim
from torch import nn


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.ConvTranspose2d(8, 3, 2, stride=2), nn.Sigmoid()
    ).to(device)
    one = SSIM(data_range=1.0, size_average=True, channel=3)
    several = MS_SSIM(data_range=1.0, win_size=3, channel=3).to(device)
    images = torch.rand(2, 3, 48, 48).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(4):
        restored = model(images)
        loss = 2 - one(restored, images) - several(restored, images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss, ssim(model(images), images, data_range=1.0, size_average=False)
