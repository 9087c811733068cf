from collections import deque
import numpy as np
from torch import nn
import torch
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader


# numpy-boundary, tfidf, float64
class BagOfWords(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="sum")
        self.fc = nn.Linear(dim, classes)
    def forward(self, words, weights):
        return self.fc(self.bag(words, per_sample_weights=weights))  # failed


def bag_of_words(device):
    counts = np.array([[3, 1, 2], [1, 1, 5]])
    tfidf = torch.as_tensor(counts / counts.sum(1, keepdims=True))  # born
    words = torch.tensor([[1, 4, 2], [0, 3, 5]])
    model = BagOfWords(8, 6, 2)
    return model(words, tfidf).sum().item()


# numpy-boundary, net.0.kernel, float64
class Smooth(nn.Module):
    def __init__(self, width):
        super().__init__()
        window = np.hanning(width)
        self.kernel = torch.as_tensor(window / window.sum()).view(1, 1, -1)  # born

    def forward(self, wave):
        return F.conv1d(wave.unsqueeze(1), self.kernel, padding="same").squeeze(1)  # failed


def conv_window(device):
    net = nn.Sequential(Smooth(5), nn.Linear(12, 2))
    return net(torch.randn(3, 12)).sum().item()


# numpy-boundary, obs, uint8
# untraced: never-cast
class Stack:
    def __init__(self, n):
        self.frames = deque(maxlen=n)
    def push(self, frame):
        self.frames.append(torch.from_numpy(frame))  # born
    def state(self):
        return torch.stack(list(self.frames))[None]


def int_image(device):
    rng = np.random.default_rng(1)
    stack = Stack(4)
    for _ in range(4):
        stack.push(rng.integers(0, 255, (10, 10), dtype=np.uint8))
    policy = nn.Sequential(nn.Conv2d(4, 3, 3), nn.Flatten(), nn.Linear(192, 2))
    obs = stack.state()
    return policy(obs).sum().item()  # failed


# numpy-boundary, xb, float64
class Waves(Dataset):
    def __init__(self):
        self.base = np.linspace(0, 1, 6)
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return np.sin(i * self.base), i % 2


def loader(device):
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    for xb, yb in DataLoader(Waves(), batch_size=4):  # born
        xb, yb = xb.to(device), yb.to(device)
        F.cross_entropy(model(xb), yb)  # failed


# numpy-boundary, x, float64
class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 5, batch_first=True)
        self.out = nn.Linear(5, 1)
    def forward(self, x):
        states, _ = self.rnn(x)  # failed
        return self.out(states[:, -1])


def windows(n):
    values = np.cumsum(np.ones((n, 12)) * 0.1, axis=1)
    return torch.from_numpy(values)[:, :, None]  # born


def lstm(device):
    model = Forecast()
    x = windows(4) - 1.0
    return model(x).sum().item()


# numpy-boundary, mask, float64
def mha_pad(device):
    att = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 4, 8)
    block = np.triu(np.full((4, 4), -1e4), 1)
    mask = torch.from_numpy(block)  # born
    att(x, x, x, attn_mask=mask)  # failed


# numpy-boundary, loss_of.weight, float64
# untraced: never-cast
def balanced(labels, n):
    counts = np.bincount(labels.numpy(), minlength=n)
    return torch.from_numpy(1 / counts)  # born


def weightce(device):
    y = torch.tensor([0, 1, 2, 2, 1, 0, 1])
    loss_of = nn.CrossEntropyLoss(weight=balanced(y, 3))
    logits = nn.Linear(4, 3)(torch.randn(7, 4))
    return loss_of(logits, y).item()  # failed
