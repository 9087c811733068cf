"""An LSTM with packed sequences; lengths stay on the CPU, as torch asks."""

import torch
import torch.nn.functional as F
from torch import nn


from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True)
        self.out = nn.Linear(6, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(hidden)


def run(device):
    torch.manual_seed(0)
    net = Tagger().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(6):
        loss = net(torch.randn(3, 5, 4, device=device), torch.tensor([5, 3, 2])).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
