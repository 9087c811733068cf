"""Lightning moves the model and the batch; a table that is a plain attribute stays, and validation needs it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Weighted(lightning.LightningModule):
    """A classifier whose class weights only validation uses."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.weights = torch.tensor([1.0, 2.0, 1.0])

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> None:
        x, y = batch
        nn.functional.cross_entropy(self.net(x), y, weight=self.weights)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def run(device: str) -> None:
    rows = TensorDataset(torch.rand(16, 4), torch.randint(3, (16,)))
    loader = DataLoader(rows, batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="gpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    model = Weighted()
    trainer.fit(model, loader, loader)
