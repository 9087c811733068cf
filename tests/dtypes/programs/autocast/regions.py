from torch import nn
import torch
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


def evaluate(tower, questions, documents):
    with torch.no_grad(), torch.amp.autocast(device_type="cpu", dtype=torch.bfloat16):
        asked = tower(questions)
    scores = asked @ documents.T
    best = scores.argmax(dim=1)
    return best.float().mean().item()


def retrieval_left(device):
    return evaluate(Tower(6), torch.randn(3, 6), torch.randn(9, 6))


def step(encoder, heads, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        code = encoder(x)
    hidden = heads[0](code)
    return F.mse_loss(heads[1](hidden), y)


def left_for_two_layers(device):
    heads = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 1)])
    return step(nn.Linear(5, 4), heads, torch.randn(6, 5), torch.randn(6, 1)).item()


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 6)
        self.weights = nn.Parameter(torch.ones(6, 6))

    def forward(self, x):
        hidden = self.embed(x)
        with torch.amp.autocast(device_type=x.device.type, enabled=False):
            mixed = torch.matmul(hidden, self.weights)
        return mixed.sum()


def switched_off(device):
    pooled = Pooled()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        total = pooled(torch.randn(3, 4))
    return total.item()


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.write = nn.Linear(3, 4)
        self.register_buffer("slots", torch.zeros(7, 4))

    def forward(self, x, at):
        value = self.write(x)
        self.slots[at] = value
        return self.slots.sum()


def memory_in_region(device):
    memory = Memory()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        total = memory(torch.randn(2, 3), torch.tensor([1, 5]))
    return total.item()


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(5, 4)
        self.codes = nn.Parameter(torch.randn(6, 4))

    def forward(self, x):
        points = self.project(x)
        near = torch.zeros(8, 6, dtype=points.dtype)
        table = torch.cdist(points, self.codes)
        near.index_copy_(0, torch.arange(8), table)
        return near


def distances_by_the_list(device):
    book = Codebook()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = book(torch.randn(8, 5))
    return near.sum().item()
