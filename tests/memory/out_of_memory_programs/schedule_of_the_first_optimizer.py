"""A warm-up's optimizer lives on in the schedule that it was given to, and in the variable of a loop."""

import torch
from torch import nn


def warmed_up(net: nn.Module, device: str) -> None:
    warm = torch.optim.Adam(net.parameters(), lr=1e-2)
    rates = torch.optim.lr_scheduler.StepLR(warm, 1)
    for each in (warm, rates):
        net(torch.ones(4, 1024, device=device)).sum().backward()
        each.step()
    main = torch.optim.Adam(net.parameters(), lr=1e-4)
    for _ in range(3):
        main.zero_grad(set_to_none=False)
        net(torch.ones(4, 1024, device=device)).sum().backward()
        main.step()


def run(device: str) -> None:
    torch.manual_seed(0)
    warmed_up(nn.Linear(1024, 1024).to(device), device)
