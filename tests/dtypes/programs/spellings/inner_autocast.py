# autocast-off, z, bfloat16
import torch
import torch.nn.functional as F
from torch import nn


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 2), nn.Linear(2, 6)


def train(model, x, optimizer):
    optimizer.zero_grad()
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        z = model.enc(x)  # born
    recon = model.dec(z)  # failed
    loss = F.mse_loss(recon, x)
    loss.backward()
    optimizer.step()
    return loss.item()


def run(device):
    torch.manual_seed(0)
    model = AE()
    return train(model, torch.randn(5, 6), torch.optim.SGD(model.parameters(), lr=0.1))
