# wrong-dtype, h, float32
import torch
from torch import nn


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
    def forward(self, x):
        h = self.norm(x.float())  # born
        return self.fc(h)  # failed


def keep_norms(model):
    for m in model.modules():
        if isinstance(m, nn.LayerNorm):
            m.float()


def run(device):
    torch.manual_seed(0)
    model = Half().half()
    keep_norms(model)
    return model(torch.randn(3, 4).half()).float().sum().item()
