import torch
from torch import nn


class ConfusionMatrix:
    def __init__(self, classes):
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.long)

    def update(self, predictions, targets):
        flat = targets * self.classes + predictions
        counts = torch.bincount(flat, minlength=self.classes**2)
        self.matrix += counts.view(self.classes, self.classes)

    def accuracy(self):
        return self.matrix.diag().sum().item() / self.matrix.sum().item()


@torch.no_grad()
def evaluate(model, batches, device):
    metric = ConfusionMatrix(3)
    model.eval()
    for x, y in batches:
        logits = model(x.to(device))
        metric.update(logits.argmax(1), y.to(device))
    return metric.accuracy()


def run(device):
    model = nn.Linear(5, 3).to(device)
    batches = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(3)]
    return evaluate(model, batches, device)
