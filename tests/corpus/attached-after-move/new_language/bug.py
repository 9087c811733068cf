"""An adapter joins a ModuleDict after the move."""

import torch
from torch import nn


class Multilingual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.adapters = nn.ModuleDict({"en": nn.Linear(4, 4)})
    def forward(self, x, lang):
        return x + self.adapters[lang](self.body(x))


def run(device):
    model = Multilingual().to(device)
    x = torch.randn(2, 4, device=device)
    model(x, "en")
    model.adapters["fr"] = nn.Linear(4, 4)
    model(x, "fr")
