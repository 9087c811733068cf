import torch
from torch import nn


def train(model, loader, optimizer, device):
    model.train()
    for inputs, lengths, targets in loader:
        inputs.to(device)
        lengths.to(device)
        targets.to(device)
        optimizer.zero_grad()
        hidden = model(inputs) / lengths.unsqueeze(-1)
        loss = nn.functional.mse_loss(hidden, targets)
        loss.backward()
        optimizer.step()


def run(device):
    data = torch.utils.data.TensorDataset(torch.randn(12, 4), torch.arange(1.0, 13.0), torch.randn(12, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    model = nn.Linear(4, 2)
    model.to(device)
    train(model, loader, torch.optim.SGD(model.parameters(), 0.1), device)
