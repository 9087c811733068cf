import contextlib
import math
import numpy as np
from torch import nn
import torch
import torch.nn.functional as F
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


def averaged_in_float32(device):
    """Averaged weights and a cache of keys, each in the dtype that it was meant to have."""
    model = nn.Linear(4, 4).bfloat16()
    average = {name: p.detach().float() for name, p in model.named_parameters()}
    cache = torch.zeros(2, 6, 4, dtype=model.weight.dtype)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    with torch.no_grad():
        for step in range(3):
            cache[:, step] = model(torch.randn(2, 4).bfloat16())
            for name, p in model.named_parameters():
                average[name].lerp_(p.float(), 0.1)
        scores = (cache @ cache.mT).float().masked_fill(~mask, float("-inf"))
        mixed = scores.softmax(-1).to(cache.dtype) @ cache
    return mixed.float().sum().item() + sum(each.sum().item() for each in average.values())


def to_its_own(module, args):
    weight = getattr(module, "weight", None)
    if weight is None:
        return None
    return tuple(a.to(weight.dtype) if torch.is_tensor(a) and a.is_floating_point() else a for a in args)


def cast_by_a_global_hook(device):
    """A hook for all modules casts what each is given to the dtype of its weights: the norm computes in float32."""
    seen = []
    net = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 2)).to(device, torch.bfloat16)
    net[1].float()
    handles = [
        register_module_forward_pre_hook(to_its_own),
        register_module_forward_hook(lambda m, a, o: seen.append(o.dtype)),
    ]
    try:
        total = [net(torch.randn(3, 4, device=device)) for _ in range(6)]
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack(total).float().mean().item() + len(seen)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.post = nn.Linear(4, 6)
        self.up = nn.Sequential(nn.SiLU(), nn.Linear(6, 12))

    @property
    def dtype(self):
        return next(self.parameters()).dtype

    def forward(self, z):
        return self.up(self.post(z))


@torch.no_grad()
def decoder_cast_up(device):
    """A decoder is cast up for its one call and back after it, as pipelines of diffusion do."""
    unet = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 4)).to(device, torch.float16 if device != "cpu" else torch.bfloat16)
    vae = Decoder().to(device, unet[0].weight.dtype)
    sigmas = torch.linspace(1, 0, 7, dtype=torch.float64).to(device, torch.float32)
    x = torch.randn(2, 4, device=device)
    for i in range(6):
        t = sigmas[i].expand(2, 1)
        eps = unet(torch.cat([x, t], 1).to(unet[0].weight.dtype)).float()
        x = x + (sigmas[i + 1] - sigmas[i]) * eps
    needs_upcast = vae.dtype == torch.float16
    if needs_upcast:
        vae.to(torch.float32)
    image = vae(x.to(vae.dtype))
    if needs_upcast:
        vae.to(torch.float16)
    return (image.float() / 2 + 0.5).clamp(0, 1).mean().item()


@contextlib.contextmanager
def default(dtype):
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(old)


def default_dtype_for_a_while(device):
    """A model and its cache made under another default dtype, inputs cast to the model's."""
    with default(torch.bfloat16), torch.device(device):
        net = nn.Sequential(nn.Linear(4, 8), nn.RMSNorm(8), nn.Linear(8, 2))
        cache = torch.zeros(6, 2)
    inputs = torch.randn(6, 3, 4, device=device)
    with torch.no_grad():
        for i, x in enumerate(inputs):
            cache[i] = net(x.to(net[0].weight.dtype)).mean(0)
    return cache.float().sum().item()


class Packed(nn.Module):
    def __init__(self, linear):
        super().__init__()
        scale = linear.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("packed", torch.round(linear.weight.detach() / scale).to(torch.int8))
        self.bias = linear.bias

    def forward(self, x):
        weight = self.packed.to(x.dtype) * self.scale.to(x.dtype)
        return nn.functional.linear(x, weight, self.bias.to(x.dtype))


def eight_bits_by_hand(device):
    """Weights kept as int8 with a scale a row, read back in the dtype of what they are multiplied with."""
    net = nn.Sequential(Packed(nn.Linear(6, 6)), nn.SiLU(), Packed(nn.Linear(6, 2)))
    return net(torch.randn(3, 6)).sum().item() + net(torch.randn(3, 6).bfloat16()).float().sum().item()


class Exp(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


def function_of_its_own_dtype(device):
    """A function of its own computes in float32 under autocast, by torch's decorators."""
    lin, out = nn.Linear(4, 4).to(device), nn.Linear(4, 1).to(device)
    opt = torch.optim.SGD([*lin.parameters(), *out.parameters()], 0.01)
    for _ in range(6):
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            loss = out(Exp.apply(lin(torch.randn(5, 4, device=device)))).float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


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
def generation_in_bfloat16(device):
    """A bfloat16 transformer that generates: rotary angles, softmax and logits in float32, a cache in the model's dtype."""
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


class Norm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.float()).to(x.dtype)


def norms_in_float32(device):
    """A half model whose norms stay float32: what they give has the dtype of their input."""
    model = nn.Sequential(nn.Linear(4, 8), Norm(8), nn.GELU(), nn.Linear(8, 8), Norm(8)).to(torch.bfloat16)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.float()
    return model(torch.randn(3, 4).bfloat16()).float().square().mean().item()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))

    def forward(self, x):
        return self.body(x)


def penalty(critic, x):
    x = x.detach().requires_grad_()
    with torch.autocast(x.device.type, enabled=False):
        (g,) = torch.autograd.grad(critic(x.float()).sum(), x, create_graph=True)
    return (g.norm(2, dim=1) - 1).pow(2).mean()


def penalty_in_float32(device):
    """A gradient penalty computed in float32 within a region of autocast."""
    critic = Critic().to(device)
    opt = torch.optim.RMSprop(critic.parameters(), 1e-3)
    for _ in range(7):
        x = torch.randn(6, 5, device=device)
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            score = critic(x)
            loss = score.float().mean() + 10 * penalty(critic, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def statistics_in_float64(device):
    """Float64 where sums are long and solutions are exact, float32 where the model computes, whole numbers for indexes."""
    table = np.random.default_rng(0).normal(size=(32, 4))
    mean = torch.from_numpy(table).mean(0)
    spread = torch.from_numpy(table).std(0)
    x = ((torch.from_numpy(table) - mean) / spread).float()
    weights = torch.linalg.lstsq(x.double(), x.double().sum(1, keepdim=True)).solution
    net = nn.Linear(4, 4)
    scores = net(x)
    best = scores.argmax(1)
    counts = torch.zeros(4, dtype=torch.long).scatter_add_(0, best, torch.ones_like(best))
    total = torch.zeros((), dtype=torch.float64)
    for row in scores.detach():
        total += row.sum()
    return (counts.float() / 32).sum().item() + total.item() + weights.sum().item()
