import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(8, 2).to(device)
for batch, labels in [(torch.ones(4, 8), torch.zeros(4, dtype=torch.long))]:
    scores = model(batch.to(device))
    print(nn.functional.cross_entropy(scores, labels))
