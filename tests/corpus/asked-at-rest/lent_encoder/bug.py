"""A hook moves an encoder to the device for each call."""
import torch
from torch import nn


class Lend:
    """Runs in place of a module's `forward`."""

    def __init__(self, module, device):
        self.module, self.device, self.forward = module, device, module.forward

    def __call__(self, x):
        self.module.to(self.device)
        result = self.forward(x.to(self.device))
        self.module.to("cpu")
        return result


def run(device):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    encoder.forward = Lend(encoder, device)
    home = next(encoder.parameters()).device
    hidden = encoder(torch.rand(2, 4))
    noise = torch.randn(2, 8, device=home)
    return (hidden + noise).sum().item()
