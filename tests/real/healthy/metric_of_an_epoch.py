"""torchmetrics: metrics that live on the device are filled by each batch and read once."""

import torch
from torchmetrics import MeanSquaredError, MetricCollection, R2Score
from torchmetrics.classification import BinaryConfusionMatrix


def run(device):
    torch.manual_seed(0)
    both = MetricCollection({"mse": MeanSquaredError(), "r2": R2Score()}).to(device)
    table = BinaryConfusionMatrix(validate_args=False).to(device)
    for _ in range(6):
        guess, truth = torch.rand(8).to(device), torch.rand(8).to(device)
        both.update(guess, truth)
        table.update(guess, (truth > 0.5).long())
    return both.compute(), table.compute()
