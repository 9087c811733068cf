# numpy-boundary, tfidf, float64
import numpy as np
import torch
from torch import nn


class BagOfWords(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="sum")
        self.fc = nn.Linear(dim, classes)
    def forward(self, words, weights):
        return self.fc(self.bag(words, per_sample_weights=weights))  # failed


def run(device):
    torch.manual_seed(0)
    counts = np.array([[3, 1, 2], [1, 1, 5]])
    tfidf = torch.as_tensor(counts / counts.sum(1, keepdims=True))  # born
    words = torch.tensor([[1, 4, 2], [0, 3, 5]])
    model = BagOfWords(8, 6, 2)
    return model(words, tfidf).sum().item()
