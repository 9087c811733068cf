# target-dtype, truth, int64
import torch
from torch import nn


def pack(rows):
    truth = torch.tensor([r["ok"] for r in rows])  # born
    w = torch.tensor([[r["score"]] for r in rows])
    return w, truth


def run(device):
    torch.manual_seed(0)
    feats, truth = pack([{"ok": 1, "score": 0.3}, {"ok": 0, "score": 0.9}])
    net = nn.Linear(1, 1)
    probability = torch.sigmoid(net(feats)).flatten()
    return nn.BCELoss()(probability, truth).item()  # failed
