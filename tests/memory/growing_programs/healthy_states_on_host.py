"""Each epoch's state goes to the host; each task gets a head of its own, which are kept with a model of each."""

import torch
from torch import nn


def run(device: str) -> None:
    body = nn.Linear(256, 512).to(device)
    heads = []
    history = []
    for _ in range(12):
        head = nn.Linear(512, 2048).to(device)
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
        head(body(torch.randn(32, 256, device=device))).square().mean().backward()
        optimizer.step()
        heads.append(head)
        history.append({key: value.cpu() for key, value in body.state_dict().items()})
