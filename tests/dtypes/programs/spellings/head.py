# attached-after-cast, model.head.weight, float32
import torch
import torch.nn.functional as F
from torch import nn


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.head = nn.Identity()
    def forward(self, x):
        x = F.relu(self.conv(x))
        return self.head(x)  # failed


def finetune(model):
    model.add_module("head", nn.Conv2d(8, 2, 1))  # born


def run(device):
    torch.manual_seed(0)
    model = Trunk().half().eval()
    finetune(model)
    with torch.inference_mode():
        return model(torch.rand(2, 3, 9, 9).half()).float().mean().item()
