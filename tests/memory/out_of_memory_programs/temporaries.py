"""Programs of which one expression makes more than there is."""

from typing import Any

import torch
from torch import nn


def attention_matrix(device: str) -> None:
    """Every position attends to every other: the matrix of their scores is what does not fit."""
    query, key = torch.randn(4, 1500, 32, device=device), torch.randn(4, 1500, 32, device=device)
    weights = (query @ key.transpose(1, 2)).softmax(-1)
    print((weights @ key).shape)


class Attention(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> Any:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).unbind(2)
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) * (d // self.heads) ** -0.5
        weights = scores.softmax(dim=-1)
        return self.out(torch.einsum("bhnm,bmhd->bnhd", weights, v).reshape(b, n, d))


def attention_by_einsum(device: str) -> Any:
    """Attention that makes the matrix of all pairs by an einsum."""
    return Attention().to(device)(torch.randn(2, 1024, 64, device=device)).mean().item()


def rbf(points: torch.Tensor, centres: torch.Tensor, gamma: float = 0.1) -> torch.Tensor:
    gap = points[:, None, :] - centres[None, :, :]
    return torch.exp(-gamma * gap.square().sum(-1))


def kernel_of_all_pairs(device: str) -> float:
    """A kernel matrix by the differences of all pairs."""
    points = torch.randn(900, 32, device=device)
    return rbf(points, points[:700]).sum().item()


def half_made_float(device: str) -> None:
    """Scores of a large vocabulary are made float32 for the loss."""
    head = nn.Linear(32, 16_000, bias=False).to(device, torch.bfloat16)
    scores = head(torch.randn(512, 32, device=device, dtype=torch.bfloat16))
    labels = torch.zeros(512, dtype=torch.long, device=device)
    nn.functional.cross_entropy(scores.float(), labels).backward()
