# wrong-dtype, net.fc.weight, float16
import torch
import torch.nn.functional as F
from torch import nn


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
    def forward(self, x):
        return self.fc(x)


def run(device):
    torch.manual_seed(0)
    net = Tiny().to(device=device, dtype=torch.float16)  # born
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # failed
        scaler.update()
    return loss.item()
