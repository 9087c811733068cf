# target-dtype, batch["attention_mask"], int64
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)
    def forward(self, hidden, attention_mask):
        scores = self.score(hidden).squeeze(-1)
        scores = scores.masked_fill(1 - attention_mask, float("-inf"))  # failed
        return (scores.softmax(-1).unsqueeze(-1) * hidden).sum(1)


def run(device):
    torch.manual_seed(0)
    batch = {"input_ids": torch.tensor([[4, 5, 0], [1, 2, 3]]), "attention_mask": torch.tensor([[1, 1, 0], [1, 1, 1]])}  # born
    emb = nn.Embedding(8, 4)
    return Pool(4)(emb(batch["input_ids"]), batch["attention_mask"]).sum().item()
