"""A model in bfloat16 from its constructor on, its loss and its metrics in float32."""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, **options):
        super().__init__()
        self.norm = nn.LayerNorm(width, **options)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True, **options)
        self.out = nn.Linear(width, width, **options)

    def forward(self, x):
        h = self.norm(x)
        return x + self.out(self.attention(h, h, h, need_weights=False)[0])


def run(device):
    torch.manual_seed(0)
    options = {"device": device, "dtype": torch.bfloat16}
    embed, block = nn.Embedding(11, 8, **options), Block(8, **options)
    head = nn.Linear(8, 11, **options)
    parameters = [*embed.parameters(), *block.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    ids = torch.randint(0, 11, (2, 6), device=device)
    for _ in range(2):
        logits = head(block(embed(ids)))
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
