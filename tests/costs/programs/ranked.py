"""Pairs of a list are compared one after the other to see how well it is ranked."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(9, 1).to(device)
    opt = torch.optim.Adagrad(net.parameters(), lr=0.1)
    right = 0
    for step, docs in enumerate(torch.randn(15, 8, 9, device=device)):
        scores = net(docs).squeeze(1)
        loss = nn.functional.softplus(-(scores[:-1] - scores[1:])).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        plain = scores.detach()
        #1> plain = plain.tolist()
        for at in range(1, len(docs)):
            if plain[at - 1] > plain[at]:  # 1
            #1> if plain[at - 1] > plain[at]:
                right += 1
        if loss.item() < 0:  # 2
        #2> if step % 100 == 0 and loss.item() < 0:
            raise ArithmeticError
    return right, net.weight.tolist()
