"""The program in README's picture: a small transformer gets a new head after it was moved."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=2 * width, batch_first=True) for _ in range(4)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 100)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embed(words)
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.head(self.norm(x).mean(dim=1))
        return scores


def main() -> None:
    device = torch.device("cuda:0")
    model = Classifier()
    model.to(device)
    model.head = nn.Linear(64, 2)
    words, labels = torch.randint(0, 100, (8, 32)), torch.randint(0, 2, (8,))
    scores = model(words.to(device))
    nn.functional.cross_entropy(scores, labels.to(device)).backward()


if __name__ == "__main__":
    main()
