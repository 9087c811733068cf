"""A function of its own computes in float32 under autocast, by torch's decorators."""
import torch
from torch import nn


class Exp(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


def run(device):
    torch.manual_seed(0)
    lin, out = nn.Linear(4, 4).to(device), nn.Linear(4, 1).to(device)
    opt = torch.optim.SGD([*lin.parameters(), *out.parameters()], 0.01)
    for _ in range(6):
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            loss = out(Exp.apply(lin(torch.randn(5, 4, device=device)))).float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
