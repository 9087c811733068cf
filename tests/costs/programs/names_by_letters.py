"""A tutorial's network of letters: its first state and each category go to the device again, and the loss comes back."""

import torch
from torch import nn


class Letters(nn.Module):
    def __init__(self, letters, hidden, classes):
        super().__init__()
        self.hidden, self.i2h = hidden, nn.Linear(letters + hidden, hidden)
        self.h2o = nn.Linear(hidden, classes)

    def forward(self, line):
        state = torch.zeros(1, self.hidden).to(line.device)  # 2
        for letter in line:
            state = torch.tanh(self.i2h(torch.cat([letter, state], 1)))
        return self.h2o(state).log_softmax(1)


def run(device):
    torch.manual_seed(0)
    rnn = Letters(10, 16, 3).to(device)
    criterion = nn.NLLLoss()
    lines = [torch.rand(4, 1, 10, device=device) for _ in range(16)]
    categories = [torch.tensor([k % 3], device=device) for k in range(16)]
    current_loss, all_losses = 0.0, []
    for line, category in zip(lines, categories):
        rnn.zero_grad()
        loss = criterion(rnn(line), category)
        loss.backward()
        with torch.no_grad():
            for p in rnn.parameters():
                p.add_(p.grad, alpha=-0.05)
        current_loss += loss.item()  # 1
    all_losses.append(current_loss / len(lines))
    return all_losses, rnn.h2o.weight.tolist()
