import torch
from torch import nn


class CharRNN(nn.Module):
    def __init__(self, vocab=20, hidden=16):
        super().__init__()
        self.hidden_size = hidden
        self.embed = nn.Embedding(vocab, 8)
        self.lstm = nn.LSTM(8, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def init_hidden(self, batch):
        h = torch.zeros(2, batch, self.hidden_size)
        c = torch.zeros(2, batch, self.hidden_size)
        return h, c

    def forward(self, x, hidden):
        y, hidden = self.lstm(self.embed(x), hidden)
        return self.out(y), hidden


def run(device):
    model = CharRNN().to(device)
    text = torch.randint(0, 20, (4, 13))
    optimizer = torch.optim.Adam(model.parameters())
    hidden = model.init_hidden(4)
    for step in range(0, 12, 4):
        x = text[:, step : step + 4].to(device)
        y = text[:, step + 1 : step + 5].to(device)
        logits, hidden = model(x, hidden)
        hidden = tuple(h.detach() for h in hidden)
        loss = nn.functional.cross_entropy(logits.reshape(-1, 20), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
