import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).to("cuda")
model.append(nn.Linear(8, 2))
print(model(torch.ones(4, 8, device="cuda")))
