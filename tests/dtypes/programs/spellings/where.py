# created-without-dtype, x, float32
import torch
from torch import nn


class Drop(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3, bias=False)
    def forward(self, x, keep):
        x = torch.where(keep[:, None], x, torch.zeros(1, 4))  # born
        return self.lin(x)  # failed


def run(device):
    torch.manual_seed(0)
    net = Drop().double()
    x = torch.randn(3, 4).double()
    keep = torch.tensor([True, False, True])
    # float64 promotes; make it half so that float32 wins
    net, x = net.half(), x.half()
    return net(x, keep).float().sum().item()
