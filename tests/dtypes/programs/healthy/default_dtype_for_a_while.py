"""A model and its cache made under another default dtype, inputs cast to the model's."""
import contextlib
import torch
from torch import nn


@contextlib.contextmanager
def default(dtype):
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(old)


def run(device):
    torch.manual_seed(0)
    with default(torch.bfloat16), torch.device(device):
        net = nn.Sequential(nn.Linear(4, 8), nn.RMSNorm(8), nn.Linear(8, 2))
        cache = torch.zeros(6, 2)
    inputs = torch.randn(6, 3, 4, device=device)
    with torch.no_grad():
        for i, x in enumerate(inputs):
            cache[i] = net(x.to(net[0].weight.dtype)).mean(0)
    return cache.float().sum().item()
