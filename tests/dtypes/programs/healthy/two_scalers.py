"""Two networks with an optimizer and a scaler each, one of them fed with the other's autocast results."""
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    kind = torch.device(device).type
    G = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 6)).to(device)
    D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
    og, od = (torch.optim.Adam(m.parameters(), 2e-4, betas=(0.5, 0.999)) for m in (G, D))
    sg, sd = torch.amp.GradScaler(kind), torch.amp.GradScaler(kind)
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(8, 1, device=device), torch.zeros(8, 1, device=device)
    for _ in range(8):
        real = torch.rand(8, 6, device=device)
        noise = torch.randn(8, 4, device=device)
        with torch.autocast(kind, dtype=torch.float16 if kind == "cuda" else torch.bfloat16):
            fake = G(noise)
            loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
        od.zero_grad()
        sd.scale(loss_d).backward()
        sd.step(od)
        sd.update()
        with torch.autocast(kind, dtype=torch.float16 if kind == "cuda" else torch.bfloat16):
            loss_g = bce(D(fake), ones)
        og.zero_grad()
        sg.scale(loss_g).backward()
        sg.step(og)
        sg.update()
    return loss_g.item()
