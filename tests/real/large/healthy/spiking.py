"""snntorch: a network of leaky neurons is trained through time, and one that learns how fast it leaks."""

import snntorch
import torch
from snntorch import functional, surrogate
from torch import nn


class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 12)
        self.hidden = snntorch.Leaky(beta=0.9, learn_beta=True, spike_grad=surrogate.fast_sigmoid())
        self.second = nn.Linear(12, 3)
        self.out = snntorch.Synaptic(alpha=0.8, beta=0.9, spike_grad=surrogate.atan())

    def forward(self, x):
        membrane = self.hidden.init_leaky()
        current, potential = self.out.init_synaptic()
        spikes = []
        for step in x:
            spike, membrane = self.hidden(self.first(step), membrane)
            spike, current, potential = self.out(self.second(spike), current, potential)
            spikes.append(spike)
        return torch.stack(spikes)


def run(device):
    torch.manual_seed(0)
    model = Spiking().to(device)
    data = torch.rand(8, 5, 6).to(device)
    targets = torch.randint(0, 3, (5,)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_of = functional.ce_rate_loss()
    losses = []
    for _ in range(4):
        loss = loss_of(model(data), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.hidden.beta, model(data).sum(0)
