import torch
from torch import nn


# created-without-dtype, layer.mix, float32
class Spectral(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(width, width, modes) / width)  # born
    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        return torch.fft.irfft(torch.einsum("bim,iom->bom", spectrum, self.mix), n=x.size(-1))  # failed


def real_weight_of_a_spectrum(device):
    layer = Spectral(3, 5)
    return layer(torch.randn(2, 3, 8)).sum().item()


# wrong-dtype, optimizer.state[net.weight]["mean"], float32
class Sign(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["mean"] = torch.zeros_like(p, dtype=torch.float32)  # born
            state["mean"].lerp_(p.grad, 0.5)  # failed
            p.sub_(0.1 * state["mean"].sign().to(p.dtype))


def state_in_another_dtype(device):
    net = nn.Linear(3, 2, bias=False).bfloat16()
    optimizer = Sign(net.parameters())
    net(torch.ones(4, 3, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()


# autocast-off, keys, bfloat16
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)
    def forward(self, x):
        return torch.relu(self.inner(x))  # born


def compared_outside(device):
    tower, bank = Tower(), torch.randn(5, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        keys = tower(torch.ones(2, 4))
    return (keys @ bank.T).sum().item()  # failed
