"""AI-Toolkit's control images (ai-toolkit #742), re-enacted: a VAE that stays on the CPU, and a guard that never fires."""

from __future__ import annotations

import torch
from torch import nn


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv2d(3, 16, 3, padding=1)

    @property
    def device(self):
        return self.encoder.weight.device

    def encode(self, image):
        return self.encoder(image.to(self.device)).flatten(2)


class StableDiffusion:
    def __init__(self, device, vae):
        self.device_torch, self.vae = torch.device(device), vae

    def encode_images(self, image_list):
        if self.vae.device == "cpu":
            self.vae.to(self.device_torch)
        return self.vae.encode(torch.stack(image_list))

    def get_noise_prediction(self, latent_model_input, control):
        img_input = latent_model_input
        img_cond_seq = self.encode_images(control)
        img_input = torch.cat((img_input, img_cond_seq), dim=1)
        return img_input.mean()


def load_vae(device="cpu"):
    state = {name: value.to(device) for name, value in AutoEncoder().state_dict().items()}
    vae = AutoEncoder()
    vae.load_state_dict(state, assign=True)
    return vae


def run(device: str, moved: str = "") -> None:
    torch.manual_seed(0)
    vae = load_vae()
    if moved:
        vae.to(device)
    sd = StableDiffusion(device, vae)
    latents = torch.randn(1, 16, 24, device=device)
    sd.get_noise_prediction(latents, [torch.rand(3, 4, 6)])
