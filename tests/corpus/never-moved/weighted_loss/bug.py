"""Cross entropy with class weights."""
import torch
from torch import nn


class Task(nn.Module):
    def __init__(self, net, rarity):
        super().__init__()
        self.net = net
        self.rarity = rarity

    def forward(self, x):
        return self.net(x)


def run(device):
    torch.manual_seed(0)
    task = Task(nn.Linear(4, 3), [1, 5, 9]).to(device)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 9.0]))
    opt = torch.optim.SGD(task.parameters(), lr=0.1)
    x = torch.randn(6, 4, device=device)
    y = torch.randint(0, 3, (6,), device=device)
    for _ in range(2):
        loss = criterion(task(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
