"""AI-Toolkit's baseline samples (ai-toolkit #214), re-enacted: the failing line is in an unpinned dependency."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).with_name("site-packages")))

from diffusers.pipeline_flux import FluxPipeline  # noqa: E402 (the folder above)


class FluxWithCFGPipeline(FluxPipeline):
    @torch.no_grad()
    def __call__(self, height, width):
        latents, latent_image_ids = self.prepare_latents(1, 16, height, width)
        return latents.mean() + latent_image_ids.mean()


class Pinned(FluxWithCFGPipeline):
    """As diffusers 0.32.0 has it: made on the CPU, moved once."""

    @staticmethod
    def _prepare_latent_image_ids(batch_size, height, width, device, dtype):
        latent_image_ids = torch.zeros(height, width, 3)
        latent_image_ids[..., 1] = latent_image_ids[..., 1] + torch.arange(height)[:, None]
        latent_image_ids[..., 2] = latent_image_ids[..., 2] + torch.arange(width)[None, :]
        return latent_image_ids.reshape(height * width, 3).to(device=device, dtype=dtype)


def run(device: str, version: str = "") -> None:
    kind = Pinned if version else FluxWithCFGPipeline
    pipeline = kind(device, torch.float32)
    pipeline(4, 6)
