"""A hook for all modules casts what each is given to the dtype of its weights: the norm computes in float32."""
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


def to_its_own(module, args):
    weight = getattr(module, "weight", None)
    if weight is None:
        return None
    return tuple(a.to(weight.dtype) if torch.is_tensor(a) and a.is_floating_point() else a for a in args)


def run(device):
    torch.manual_seed(0)
    seen = []
    net = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 2)).to(device, torch.bfloat16)
    net[1].float()
    handles = [
        register_module_forward_pre_hook(to_its_own),
        register_module_forward_hook(lambda m, a, o: seen.append(o.dtype)),
    ]
    try:
        total = [net(torch.randn(3, 4, device=device)) for _ in range(6)]
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack(total).float().mean().item() + len(seen)
