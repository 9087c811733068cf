"""fastai 2.2.7 makes the hidden state of its language model when it is built: a move later passes it by."""

import importlib.util
import sys
import types
from pathlib import Path

import torch


def without_spacy():
    """Import the model alone: its package imports tokenizers that it does not use."""
    root = Path(importlib.util.find_spec("fastai").origin).parent
    for name in ("fastai.text", "fastai.text.models"):
        package = types.ModuleType(name)
        package.__path__ = [str(root.parent / name.replace(".", "/"))]
        sys.modules[name] = package
    for name in ("spacy", "spacy.symbols"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["spacy.symbols"].ORTH = 0


def run(device):
    without_spacy()
    from fastai.text.models.awdlstm import AWD_LSTM

    torch.manual_seed(0)
    language_model = AWD_LSTM(vocab_sz=30, emb_sz=6, n_hid=10, n_layers=2)
    language_model.to(device)
    return language_model(torch.randint(0, 30, (2, 5), device=device))
