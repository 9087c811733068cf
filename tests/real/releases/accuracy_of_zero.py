"""torchmetrics 1.4.0 copies a number to the device in every division (mended in 1.4.1)."""

import torch
from torchmetrics.functional.classification import multiclass_f1_score


def run(device):
    torch.manual_seed(0)
    for _ in range(20):
        logits = torch.rand(6, 4, device=device)
        truth = torch.randint(4, (6,), device=device)
        multiclass_f1_score(logits, truth, num_classes=4, validate_args=False)
