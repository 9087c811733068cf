import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=12, dim=8):
        super().__init__()
        self.src = nn.Embedding(vocab, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)
        self.vocab = vocab

    def forward(self, x, target_len, teacher=None):
        _, h = self.encoder(self.src(x))
        h = h.squeeze(0)
        token = torch.zeros(x.size(0), dtype=torch.long)
        outputs = torch.zeros(x.size(0), target_len, self.vocab)
        for t in range(target_len):
            h = self.decoder(self.src(token), h)
            logits = self.out(h)
            outputs[:, t] = logits
            token = logits.argmax(-1) if teacher is None else teacher[:, t]
        return outputs


def run(device):
    model = Seq2Seq().to(device)
    x = torch.randint(0, 12, (3, 5)).to(device)
    y = torch.randint(0, 12, (3, 4))
    logits = model(x, 4, teacher=y)
    nn.functional.cross_entropy(logits.reshape(-1, 12), y.reshape(-1)).backward()
