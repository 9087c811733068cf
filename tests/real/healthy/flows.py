"""zuko: flows of three kinds learn a conditional density."""

import torch
import zuko


def run(device):
    values = []
    for build in (
        lambda: zuko.flows.NSF(features=3, context=2, transforms=2, hidden_features=(16, 16)),
        lambda: zuko.flows.MAF(3, 2, transforms=2),
        lambda: zuko.flows.GMM(3, 2, components=3),
    ):
        torch.manual_seed(0)
        flow = build().to(device)
        optimizer = torch.optim.AdamW(flow.parameters(), lr=1e-3)
        for batch in torch.randn(48, 5).split(16):
            x, context = batch[:, :3].to(device), batch[:, 3:].to(device)
            optimizer.zero_grad()
            loss = -flow(context).log_prob(x).mean()
            loss.backward()
            optimizer.step()
        values.append(loss)
    return values
