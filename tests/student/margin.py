import torch
from torch import nn


class CosFace(nn.Module):
    def __init__(self, dim, classes, gpus, s=64.0, m=0.35):
        super().__init__()
        self.gpus, self.s, self.m = gpus, s, m
        self.weight = nn.Parameter(torch.randn(classes, dim))

    def forward(self, x, label):
        cosine = nn.functional.linear(nn.functional.normalize(x), nn.functional.normalize(self.weight))
        one_hot = torch.zeros(cosine.size())
        if self.gpus is not None:
            one_hot = one_hot.cuda(self.gpus[0])
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return (one_hot * (cosine - self.m) + (1 - one_hot) * cosine) * self.s


def run(device):
    dev = torch.device("cuda", 1)
    head = CosFace(4, 5, gpus=[0, 1]).to(dev)
    head(torch.randn(3, 4).to(dev), torch.tensor([0, 2, 4]).to(dev)).sum().backward()
