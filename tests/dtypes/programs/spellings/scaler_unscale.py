# wrong-dtype, net.0.weight, float16
import torch
from torch import nn


def make(width, dtype):
    return nn.Sequential(nn.Linear(width, 6, dtype=dtype), nn.ReLU(), nn.Linear(6, 1, dtype=dtype))  # born


def run(device):
    torch.manual_seed(0)
    net = make(4, torch.float16)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    x, y = torch.randn(5, 4), torch.randn(5, 1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (net(x.half()).float() - y).square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)  # failed
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    return loss.item()
