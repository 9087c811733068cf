import torch
import torch.nn.functional as F
from torch import nn


class EdgeLoss(nn.Module):
    sobel_x = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]).view(1, 1, 3, 3)
    sobel_y = sobel_x.transpose(2, 3)

    def edges(self, x):
        gx = F.conv2d(x, self.sobel_x, padding=1)
        gy = F.conv2d(x, self.sobel_y, padding=1)
        return torch.sqrt(gx**2 + gy**2 + 1e-6)

    def forward(self, a, b):
        return F.l1_loss(self.edges(a), self.edges(b))


def run(device):
    net = nn.Conv2d(1, 1, 3, padding=1).to(device)
    criterion = EdgeLoss().to(device)
    x = torch.rand(2, 1, 8, 8, device=device)
    criterion(net(x), x).backward()
