"""Sentences of any length: how many words each has goes to the device and back to pack them, and a score is kept."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


def run(device):
    torch.manual_seed(0)
    embed, rnn = nn.Embedding(50, 8).to(device), nn.GRU(8, 8, batch_first=True).to(device)
    out = nn.Linear(8, 4).to(device)
    opt = torch.optim.Adam([*embed.parameters(), *rnn.parameters(), *out.parameters()])
    scores = []
    for words in torch.randint(1, 50, (14, 6, 5)):
        lengths = 3 + words[:, 0] % 3
        words = words.to(device)
        lengths = lengths.to(device)  # -1
        packed = pack_padded_sequence(embed(words), lengths.cpu(), batch_first=True, enforce_sorted=False)  # 1
        #1> packed = pack_padded_sequence(embed(words), lengths, batch_first=True, enforce_sorted=False)
        loss = out(rnn(packed)[1][0]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        scores.append(loss.item())  # 2
    return scores
