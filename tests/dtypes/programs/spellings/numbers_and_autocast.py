from torch import nn
import torch


# python-number, scores, float16
def top(scores, allowed):
    scores.masked_fill_(~allowed, -1e5)  # failed
    return scores.softmax(-1)


def fill(device):
    layer = nn.Linear(4, 6).half()
    scores = layer(torch.randn(3, 4).half()).detach()  # born
    allowed = torch.arange(6)[None] < torch.tensor([2, 5, 6])[:, None]
    return top(scores, allowed).float().max().item()


# python-number, torch.full(shape, FLOOR, dtype=dtype), float16
FLOOR = -1e9


def empty_scores(shape, dtype):
    return torch.full(shape, FLOOR, dtype=dtype)  # born and failed


def floor_of_scores(device):
    x = torch.randn(2, 4).half()
    return torch.maximum(empty_scores(x.shape, x.dtype), x).float().sum().item()


# python-number, distance, int64
def inf(device):
    n = 5
    distance = torch.zeros(n, dtype=torch.long)  # born
    distance.fill_(float("inf"))  # failed


# autocast-off, feats, bfloat16
class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 6), nn.GELU(), nn.Linear(6, 6))
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        return self.net(x)  # born


def predict(backbone, heads, task, x):
    feats = backbone(x)
    return heads[task](feats)  # failed


def autocast_left(device):
    heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3)})
    return predict(Backbone(), heads, "b", torch.randn(4, 3)).sum().item()


# autocast-off, x, bfloat16
class Cluster(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(6, 4)
        self.centers = nn.Parameter(torch.randn(3, 4))
    def score(self, x):
        with torch.autocast("cpu", enabled=False):
            return torch.einsum("bd,kd->bk", x, self.centers)  # failed
    def forward(self, x):
        x = self.proj(x)  # born
        return self.score(x)


def disabled(device):
    net = Cluster()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(torch.randn(5, 6))
    return out.float().square().mean().item()
