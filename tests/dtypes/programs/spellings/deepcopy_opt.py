# stale-copy, slow.weight, float32
import torch
from torch import nn
import copy


@torch.no_grad()
def follow(slow, net, rate=0.1):
    for a, b in zip(slow.parameters(), net.parameters()):
        a.data = torch.lerp(a.data, b.data, rate)  # failed


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(4, 4)
    slow = copy.deepcopy(net)  # born
    net = net.half()
    for _ in range(2):
        follow(slow, net)
    return slow.weight.float().sum().item()
