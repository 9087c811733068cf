"""A bfloat16 transformer that generates: rotary angles, softmax and logits in float32, a cache in the model's dtype."""
import math
import torch
from torch import nn
import torch.nn.functional as F


class RMS(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


def rope(t, pos, base=10000.0):
    half = t.shape[-1] // 2
    freq = base ** (-torch.arange(half, device=t.device, dtype=torch.float32) / half)
    ang = pos[:, None].float() * freq
    cos, sin = ang.cos().to(t.dtype), ang.sin().to(t.dtype)
    a, b = t[..., :half], t[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)

    def forward(self, x, pos, cache):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        q, k = rope(q, pos), rope(k, pos)
        if cache:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        w = (q @ k.mT) / math.sqrt(d // self.h)
        if n > 1:
            w = w.masked_fill(torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1), torch.finfo(w.dtype).min)
        w = F.softmax(w, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.o((w @ v).transpose(1, 2).reshape(b, n, d)), (k, v)


class Model(nn.Module):
    def __init__(self, d=16, vocab=19):
        super().__init__()
        self.emb, self.n1, self.attn, self.n2 = nn.Embedding(vocab, d), RMS(d), Attn(d, 2), RMS(d)
        self.mlp = nn.Sequential(nn.Linear(d, 32), nn.SiLU(), nn.Linear(32, d))
        self.head = nn.Linear(d, vocab, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids, pos, cache=None):
        x = self.emb(ids)
        a, cache = self.attn(self.n1(x), pos, cache)
        x = x + a
        x = x + self.mlp(self.n2(x))
        return self.head(x).float(), cache


@torch.inference_mode()
def run(device):
    torch.manual_seed(0)
    model = Model().to(device, torch.bfloat16).eval()
    ids = torch.randint(0, 19, (2, 5), device=device)
    pos = torch.arange(5, device=device)
    logits, cache = model(ids, pos)
    out = [ids]
    for step in range(8):
        nxt = torch.multinomial((logits[:, -1] / 0.7).softmax(-1), 1)
        out.append(nxt)
        logits, cache = model(nxt, torch.full((1,), 5 + step, device=device), cache)
    return float(torch.cat(out, 1).shape[1])
