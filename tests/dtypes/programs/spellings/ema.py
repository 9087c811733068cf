# stale-copy, ema.shadow["0.weight"], float32
import torch
from torch import nn


class Ema:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {name: value.detach().clone() for name, value in model.named_parameters()}  # born
    def update(self, model):
        for name, value in model.named_parameters():
            old = self.shadow[name]
            self.shadow[name] = torch.lerp(value.detach(), old, self.decay)  # failed


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    ema = Ema(model)
    model.to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.randn(6, 4).to(torch.bfloat16)).square().mean()
        loss.backward()
        optimizer.step()
        ema.update(model)
    return loss.float().item() + 1
