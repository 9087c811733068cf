"""pytorch-metric-learning: embeddings learn distances by mined triplets, proxies and a memory of former batches."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers
from torch import nn


def run(device):
    torch.manual_seed(0)
    trunk = nn.Linear(10, 6).to(device)
    data, labels = torch.randn(16, 10).to(device), (torch.arange(16) % 4).to(device)
    triplets = losses.TripletMarginLoss(distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0))
    miner = miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard")
    proxies = losses.ProxyAnchorLoss(num_classes=4, embedding_size=6).to(device)
    memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), embedding_size=6, memory_size=48)
    optimizer = torch.optim.SGD([*trunk.parameters(), *proxies.parameters()], lr=0.1)
    kept = []
    for _ in range(4):
        embeddings = trunk(data)
        mined = miner(embeddings, labels)
        loss = triplets(embeddings, labels, mined) + proxies(embeddings, labels) + memory(embeddings, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(loss.detach())
    return kept, trunk.weight
