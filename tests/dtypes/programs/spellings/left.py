# autocast-off, features, bfloat16
import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    body, head = nn.Sequential(nn.Linear(6, 8), nn.ReLU()), nn.Linear(8, 3)
    x, y = torch.randn(7, 6), torch.randint(0, 3, (7,))
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        features = body(x)  # born
    logits = head(features)  # failed
    loss = F.cross_entropy(logits, y)
    loss.backward()
    return loss.item()
