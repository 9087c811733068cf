"""Wrap chosen layers of a model."""
import torch
from torch import nn


class Shifted(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.shift = nn.Parameter(torch.zeros(inner.out_features))

    def forward(self, x):
        return self.inner(x) + self.shift


def inject(model, wanted):
    chosen = [name for name, module in model.named_modules() if isinstance(module, nn.Linear) and wanted(name)]
    for name in chosen:
        path, _, leaf = name.rpartition(".")
        parent = model.get_submodule(path)
        parent[leaf] = Shifted(parent[leaf])
