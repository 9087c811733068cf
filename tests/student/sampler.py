import torch
from torch import nn


class Sampler:
    def __init__(self, model):
        self.model = model

    def register_buffer(self, name, attr):
        if isinstance(attr, torch.Tensor) and str(attr.device) != "cuda:0":
            attr = attr.to(torch.device("cuda"))
        setattr(self, name, attr)

    def make_schedule(self, n):
        betas = torch.linspace(1e-4, 2e-2, n)
        self.register_buffer("alphas", torch.cumprod(1 - betas, 0))

    def sample(self, x, t):
        e = self.model(x)
        a = self.alphas.index_select(0, t).view(-1, 1)
        return (x - (1 - a).sqrt() * e) / a.sqrt()


def run(device):
    device = torch.device("cuda:1")
    sampler = Sampler(nn.Linear(4, 4).to(device))
    sampler.make_schedule(8)
    sampler.sample(torch.randn(2, 4, device=device), torch.tensor([3, 5], device=device))
