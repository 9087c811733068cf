"""A batch mover that looks one level deep."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"series": torch.full((4,), float(i)), "extra": {"valid": torch.ones(4), "index": i}}


def move(batch, device):
    return {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, batch):
        guess = self.net(batch["series"])
        error = (guess - batch["series"]) ** 2
        return (error * batch["extra"]["valid"]).mean()


def run(device):
    torch.manual_seed(0)
    model = Forecaster().to(device)
    losses = []
    for batch in DataLoader(Windows(), batch_size=3):
        batch = move(batch, device)
        losses.append(model(batch).detach())
    return torch.stack(losses).mean().item()
