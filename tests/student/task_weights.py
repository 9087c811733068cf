import torch
from torch import nn


class ChemMetric(nn.Module):
    def __init__(self, task_weights=1.0):
        super().__init__()
        self.task_weights = torch.as_tensor(task_weights, dtype=torch.float).view(1, -1)

    def forward(self, preds, targets):
        L = nn.functional.binary_cross_entropy_with_logits(preds, targets, reduction="none")
        return (L * self.task_weights).mean()


class Predictor(nn.Module):
    def __init__(self, criterion):
        super().__init__()
        self.ffn, self.criterion = nn.Linear(4, 3), criterion


def run(device):
    predictor = Predictor(ChemMetric(torch.ones(3)))
    predictor.to(device="cuda")
    preds = predictor.ffn(torch.ones(10, 4).to("cuda"))
    predictor.criterion(preds, torch.ones(10, 3).to("cuda"))
