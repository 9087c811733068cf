"""A scaler asks what overflows; the loss is written every ten batches."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    scaler, lines = torch.amp.GradScaler(device.partition(":")[0]), []
    for step, x in enumerate(torch.rand(30, 12, 8, device=device)):
        with torch.autocast(device.partition(":")[0], torch.float16):
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        scaler.step(opt)
        scaler.update()
        if step % 10 == 9:
            lines.append(f"{step} {loss.item():.3f}")
    return net[0].bias.tolist(), len(lines)
