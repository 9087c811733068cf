import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(10, 8)
        self.mu = nn.Linear(8, 2)
        self.logvar = nn.Linear(8, 2)
        self.dec = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 10))
        self.prior_mean = torch.zeros(2)
        self.prior_scale = torch.ones(2)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn(std.shape)
        return mu + eps * std

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = self.reparameterize(mu, logvar)
        kl = (((mu - self.prior_mean) / self.prior_scale) ** 2 + logvar.exp() - logvar - 1).sum()
        return self.dec(z), kl


def run(device):
    vae = VAE().to(device)
    x = torch.rand(4, 10).to(device)
    out, kl = vae(x)
    (nn.functional.mse_loss(out, x) + 0.1 * kl).backward()
