"""Evaluate on the host, batch by batch."""
import torch
import torch.nn as nn


class Evaluator:
    def __init__(self, net, device):
        self.net, self.device = net, device

    def __call__(self, batches):
        right = seen = 0
        for x, y in batches:
            logits = self.net(x.to(self.device)).cpu()
            guess = logits.log_softmax(-1).argmax(-1)
            right += (guess == y).sum()
            seen += len(y)
        return right / seen


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    batches = [(torch.randn(4, 3), torch.randint(0, 3, (4,))) for _ in range(7)]
    with torch.no_grad():
        return float(Evaluator(net, device)(batches))
