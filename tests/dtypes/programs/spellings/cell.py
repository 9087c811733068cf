# created-without-dtype, state, float32
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, vocab=20, width=8):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(vocab, width)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, vocab)
    def forward(self, tokens):
        x = self.embed(tokens)
        state = torch.zeros(tokens.size(0), self.width, device=tokens.device)  # born
        for t in range(x.size(1)):
            state = self.cell(x[:, t], state)  # failed
        return self.out(state)


def run(device):
    torch.manual_seed(0)
    model = Reader().to(device, dtype=torch.bfloat16)
    tokens = torch.randint(0, 20, (3, 4), device=device)
    return model(tokens).float().logsumexp(-1).mean().item()
