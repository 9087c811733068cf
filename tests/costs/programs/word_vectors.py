"""Skip-grams whose negative words are drawn by frequency, and whose sure pairs are left out."""

import torch
from torch import nn
from torch.nn import functional as F


def run(device):
    torch.manual_seed(0)
    table, context = nn.Embedding(50, 8).to(device), nn.Embedding(50, 8).to(device)
    opt = torch.optim.SGD([*table.parameters(), *context.parameters()], lr=0.2)
    counts = torch.rand(50)
    for _ in range(30):
        centre = torch.randint(0, 50, (16,), device=device)
        around = torch.randint(0, 50, (16,), device=device)
        negative = torch.multinomial(counts.to(device), 16)  # 2
        good = (table(centre) * context(around)).sum(1)
        bad = (table(centre) * context(negative)).sum(1)
        mask = good.detach() < 4
        loss = -F.logsigmoid(good)[mask].mean() - F.logsigmoid(-bad).mean()  # 1
        opt.zero_grad()
        loss.backward()
        opt.step()
    return table.weight.tolist()
