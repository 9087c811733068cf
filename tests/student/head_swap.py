import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.classifier = nn.Linear(8, 10)
        self.aux = None

    def forward(self, x):
        h = self.features(x)
        out = self.classifier(h)
        return out if self.aux is None else out + self.aux(h)


def replace_head(model, classes):
    width = model.classifier.in_features
    model.classifier = nn.Linear(width, classes)
    model.aux = nn.Linear(width, classes)
    for p in model.features.parameters():
        p.requires_grad = False


def run(device):
    model = Backbone().to(device)
    replace_head(model, 3)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    x, y = torch.randn(5, 6).to(device), torch.tensor([0, 1, 2, 0, 1]).to(device)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
