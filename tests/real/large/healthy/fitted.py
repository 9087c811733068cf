"""lightning: a module with metrics is trained, validated and tested."""

import tempfile
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def training_step(self, batch, number):
        loss = (self.net(batch[0]) - batch[1]).square().mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, number):
        self.log("validation", (self.net(batch[0]) - batch[1]).abs().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def run(device):
    warnings.simplefilter("ignore")
    lightning.seed_everything(0)
    x = torch.rand(16, 4)
    batches = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
    module = Regression()
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu" if device == "cpu" else "gpu",
            devices=1,
            max_epochs=2,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
        )
        trainer.fit(module, batches, batches)
        (result,) = trainer.validate(module, batches, verbose=False)
    return result["validation"], list(module.parameters())
