"""kornia: images are filtered and turned on the device."""

import kornia
import torch


def run(device):
    torch.manual_seed(0)
    images = torch.rand(2, 3, 12, 12).to(device)
    blurred = kornia.filters.gaussian_blur2d(images, (3, 3), (1.0, 1.0))
    edges = kornia.filters.sobel(blurred)
    turned = kornia.geometry.transform.rotate(edges, torch.tensor([30.0, -10.0], device=device))
    return turned, kornia.color.rgb_to_hsv(images), kornia.losses.ssim_loss(images, blurred, window_size=5)
