"""A classifier that asks for the labels of what it doubts, and keeps a table of losses."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(5, 3).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    pool = torch.randn(40, 12, 5).to(device)
    asked, log = [], {}
    for step, batch in enumerate(pool):
        out = net(batch)
        doubt = torch.distributions.Categorical(logits=out.detach()).entropy()
        #1> doubts = doubt.tolist()
        for at in range(len(doubt)):
            if doubt[at].item() > 1.0:  # 1
            #1> if doubts[at] > 1.0:
                asked.append((step, at))
        loss = out.logsumexp(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        log[step] = float(loss)  # 2
        #2> log[step] = loss.detach()
    #2> log = dict(zip(log, torch.stack([*log.values()]).tolist()))
    return asked, list(log.values())
