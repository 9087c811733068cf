from dataclasses import dataclass
import numpy as np
import pandas as pd
from torch import nn
import torch
import torch.nn.functional as F


# target-dtype, truth, int64
def pack(rows):
    truth = torch.tensor([r["ok"] for r in rows])  # born
    w = torch.tensor([[r["score"]] for r in rows])
    return w, truth


def bce_int(device):
    feats, truth = pack([{"ok": 1, "score": 0.3}, {"ok": 0, "score": 0.9}])
    net = nn.Linear(1, 1)
    probability = torch.sigmoid(net(feats)).flatten()
    return nn.BCELoss()(probability, truth).item()  # failed


# target-dtype, example["label"], float32
class Table(torch.utils.data.Dataset):
    def __init__(self, frame):
        self.x = torch.tensor(frame[["a", "b"]].to_numpy(dtype="float32"))
        self.y = torch.tensor(frame["label"].to_numpy(dtype="float32"))  # born
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return {"x": self.x[i], "label": self.y[i]}


def ce_targets(device):
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [1.0, 0.0, 1.0], "label": [0, 2, 1]})
    loader = torch.utils.data.DataLoader(Table(frame), batch_size=3)
    net = nn.Linear(2, 3)
    for example in loader:
        F.cross_entropy(net(example["x"]), example["label"])  # failed


# target-dtype, codes, float16
def quantise(x, levels):
    lo, hi = x.min(), x.max()
    return ((x - lo) / (hi - lo) * (levels - 1)).round().half()  # born


class Codebook(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(levels, 3))
    def forward(self, codes):
        return self.vectors[codes]  # failed


def embed_bag_index_int8(device):
    codes = quantise(torch.randn(7), 8)
    return Codebook(8)(codes).sum().item()


# target-dtype, meter.sum, int64
class Meter:
    def __init__(self):
        self.sum = torch.tensor(0)  # born
    def add(self, value):
        self.sum += value.mean()  # failed


def meta(device):
    meter = Meter()
    for _ in range(3):
        meter.add(torch.rand(4))


# target-dtype, done, bool
def one_minus(device):
    reward, after = torch.rand(4), torch.rand(4)
    done = torch.tensor([True, False, False, True])  # born
    goal = reward + 0.9 * (1 - done) * after  # failed
    return goal.sum().item()


# target-dtype, row, bfloat16
def export(rows):
    return np.stack([row.numpy() for row in rows])  # failed


def numpy_bf16(device):
    enc = nn.Linear(4, 3)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        feats = enc(torch.randn(6, 4))  # born
    return float(export(feats).sum())


# target-dtype, state, bfloat16
@torch.no_grad()
def numpy_of_an_action(device):
    policy = nn.Linear(4, 2).to(device, torch.bfloat16)
    state = torch.ones(3, 4, device=device, dtype=torch.bfloat16)  # born
    action = policy(state).cpu().numpy()  # failed
    return action.sum()


# target-dtype, self.net(x)[:, 0], bfloat16
class Scorer:
    def __init__(self, device):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)

    def rank(self, x):
        return np.argsort(self.net(x)[:, 0].cpu().numpy())  # born failed


@torch.no_grad()
def numpy_of_scores(device):
    scorer = Scorer(device)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        order = scorer.rank(torch.randn(6, 4, device=device))
    return int(order[0])


# target-dtype, labels, int32
def onehot(device):
    labels = torch.tensor([0, 2, 1], dtype=torch.int32)  # born
    table = F.one_hot(labels, 4).float()  # failed
    return table.sum().item()


# target-dtype, buf, float32
class Keys(nn.Module):
    def __init__(self, keys):
        super().__init__()
        self.register_buffer("keys", keys)
    def forward(self, q):
        buf = torch.empty(q.shape[0], self.keys.shape[0])  # born
        torch.mm(q, self.keys.t(), out=buf)  # failed
        return buf.softmax(-1)


def out_buffer(device):
    scorer = Keys(torch.randn(5, 4)).half()
    with torch.no_grad():
        return scorer(torch.randn(2, 4).half()).float().sum().item()


# target-dtype, pad, int64
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
    def forward(self, x, pad):
        return self.attn(x, x, x, key_padding_mask=pad)[0]  # failed


def padding_of_whole_numbers(device):
    ids = torch.tensor([[3, 4, 0], [5, 6, 7]])
    pad = (ids == 0).long()  # born
    x = nn.Embedding(8, 4)(ids)
    return Block(4)(x, pad).sum().item()


# target-dtype, votes, int64
def softmax_long(device):
    picks = torch.randint(0, 4, (20,))
    votes = torch.bincount(picks, minlength=4)  # born
    share = votes.softmax(0)  # failed
    return share.max().item()


# target-dtype, batch.ids, float32
@dataclass
class Batch:
    ids: torch.Tensor


class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(8, 4)
        self.out = nn.Linear(4, 8)
    def forward(self, batch):
        return self.out(self.wte(batch.ids))  # failed


def token_dataclass(device):
    batch = Batch(ids=torch.tensor([[1.0, 3.0, 2.0]]))  # born
    return Lm()(batch).mean().item()


# target-dtype, mask, float32
def collate(lengths):
    width = max(lengths)
    return {"mask": torch.tensor([[1.0] * n + [0.0] * (width - n) for n in lengths]), "width": width}  # born


def where_mask(device):
    batch = collate([2, 4])
    scores = torch.randn(2, batch["width"])
    mask = batch["mask"]
    kept = torch.where(mask, scores, torch.full_like(scores, -9.0))  # failed
    return kept.softmax(-1).sum().item()
