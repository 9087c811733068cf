"""Recognize-Anything's finetune.py (#155), re-enacted with its names: two of four items of the batch are moved."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, at):
        torch.manual_seed(at)
        image, image_224 = torch.rand(3, 16, 16), torch.rand(3, 8, 8)
        return image, image_224, f"picture {at}", torch.randint(0, 2, (20,)), torch.randint(0, 2, (20,))


class AsymmetricLoss(nn.Module):
    def forward(self, x, y):
        x_sigmoid = torch.sigmoid(x)
        los_pos = y * torch.log(x_sigmoid.clamp(min=1e-8))
        los_neg = (1 - y) * torch.log((1 - x_sigmoid).clamp(min=1e-8))
        return -(los_pos + los_neg).sum()


class RAM(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual_encoder = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.fc = nn.Linear(8, 20)
        self.tagging_loss_function = AsymmetricLoss()

    def forward(self, image, caption, image_tag, parse_tag):
        logits = self.fc(self.visual_encoder(image))
        self.tags = parse_tag.cpu().numpy()  # only ever read on the CPU
        return self.tagging_loss_function(logits, image_tag)


def train_ram(model, data_loader, optimizer, device, issue):
    model.train()
    for image, image_224, caption, image_tag, parse_tag in data_loader:
        optimizer.zero_grad()
        image = image.to(device, non_blocking=True)
        image_224 = image_224.to(device, non_blocking=True)
        if issue:  # what the issue proposes; right for image_tag, a round trip for parse_tag
            image_tag = image_tag.to(device, non_blocking=True)
            parse_tag = parse_tag.to(device, non_blocking=True)
        loss = model(image, caption, image_tag, parse_tag)
        loss.backward()
        optimizer.step()


def distributed(model):
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(model, device_ids=[0])


def run(where: str, change: str = "") -> None:
    device = torch.device(where)
    torch.manual_seed(0)
    model = RAM().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Pictures(), batch_size=4)
    net = distributed(model) if change == "ddp" else model
    train_ram(net, loader, optimizer, device, change == "issue")
