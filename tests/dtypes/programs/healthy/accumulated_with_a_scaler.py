"""Gradients of two batches are added up in autocast, unscaled and clipped before the step."""
import torch
from torch import nn
import torch.nn.functional as F


def run(device):
    torch.manual_seed(0)
    kind = torch.device(device).type
    net = nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 4)).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=6)
    scaler = torch.amp.GradScaler(kind, init_scale=8.0)
    for step in range(12):
        x = torch.randn(4, 3, 10, device=device)
        y = torch.randint(0, 4, (4,), device=device)
        with torch.autocast(kind, dtype=torch.bfloat16):
            logits = net(x)
            loss = F.cross_entropy(logits, y, label_smoothing=0.1) / 2
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
            sched.step()
    return loss.item()
