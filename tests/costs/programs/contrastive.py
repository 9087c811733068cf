"""Two views of each image are drawn together: the pairs' mask is made anew on the CPU, and the temperature is read."""

import torch
from torch import nn
from torch.nn import functional as F


class Temperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = nn.Parameter(torch.tensor(0.5))

    def forward(self, alike):
        return alike / self.log.exp().item()  # 1
        #1> return alike / self.log.exp().detach()


def run(device):
    torch.manual_seed(0)
    encoder, scale = nn.Linear(12, 6).to(device), Temperature().to(device)
    opt = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for views in torch.randn(25, 32, 12, device=device):
        z = F.normalize(encoder(views), dim=1)
        alike = scale(z @ z.T)
        mask = ~torch.eye(32, dtype=torch.bool).to(device)  # 2
        loss = (alike * mask).exp().sum(1).log().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return encoder.weight.tolist()
