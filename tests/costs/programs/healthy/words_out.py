"""Words are drawn until the last one, which the host has to see; all that is written is read at once."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    table, cell, head = nn.Embedding(30, 12).to(device), nn.GRUCell(12, 12).to(device), nn.Linear(12, 30).to(device)
    texts = []
    with torch.inference_mode():
        for _ in range(4):
            state, word, words = torch.zeros(1, 12, device=device), torch.ones(1, dtype=torch.long, device=device), []
            for _ in range(15):
                state = cell(table(word), state)
                word = head(state).argmax(1)
                words.append(word)
                if word.item() == 0:
                    break
            texts.append(torch.cat(words).tolist())
    return texts
