from torch import nn
import torch
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def accumulated_with_a_scaler(device):
    """Gradients of two batches are added up in autocast, unscaled and clipped before the step."""
    kind = torch.device(device).type
    net = nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 4)).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=6)
    scaler = torch.amp.GradScaler(kind, init_scale=8.0)
    for step in range(12):
        x = torch.randn(4, 3, 10, device=device)
        y = torch.randint(0, 4, (4,), device=device)
        with torch.autocast(kind, dtype=torch.bfloat16):
            logits = net(x)
            loss = F.cross_entropy(logits, y, label_smoothing=0.1) / 2
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
            sched.step()
    return loss.item()


def autocast_with_scaler(device):
    """Autocast in half precision with a gradient scaler: weights stay float32, the loss is computed in float32."""
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    for _ in range(3):
        x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return loss.item()


class Block(nn.Module):
    def __init__(self, width, **options):
        super().__init__()
        self.norm = nn.LayerNorm(width, **options)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True, **options)
        self.out = nn.Linear(width, width, **options)

    def forward(self, x):
        h = self.norm(x)
        return x + self.out(self.attention(h, h, h, need_weights=False)[0])


def bfloat16_training(device):
    """A model in bfloat16 from its constructor on, its loss and its metrics in float32."""
    options = {"device": device, "dtype": torch.bfloat16}
    embed, block = nn.Embedding(11, 8, **options), Block(8, **options)
    head = nn.Linear(8, 11, **options)
    parameters = [*embed.parameters(), *block.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    ids = torch.randint(0, 11, (2, 6), device=device)
    for _ in range(2):
        logits = head(block(embed(ids)))
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def flat_master_weights(device):
    """A bfloat16 model with one flat float32 vector of master weights and a loss scale by hand."""
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to(device, torch.bfloat16)
    master = nn.Parameter(parameters_to_vector(net.parameters()).detach().float())
    opt = torch.optim.AdamW([master], 1e-2)
    scale = 128.0
    for _ in range(6):
        loss = net(torch.randn(8, 4, device=device, dtype=torch.bfloat16)).float().square().mean()
        net.zero_grad()
        (loss * scale).backward()
        master.grad = torch.cat([p.grad.reshape(-1).float() for p in net.parameters()]) / scale
        opt.step()
        vector_to_parameters(master.detach().to(torch.bfloat16), net.parameters())
    return loss.item()


class Adapter(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        change = self.up(self.down(x.to(self.down.weight.dtype)))
        return self.base(x) + change.to(x.dtype)


def lora_in_float32(device):
    """Adapters in float32 on a frozen bfloat16 model: each casts its input up and its result down."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(torch.bfloat16)
    model[0], model[2] = Adapter(model[0]), Adapter(model[2])
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(3):
        loss = model(torch.randn(5, 4).bfloat16()).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def add_stochastic(p, update):
    exact = p.float() + update.float()
    bits = exact.view(torch.int32)
    bits = bits + torch.randint_like(bits, 0, 1 << 16)
    p.copy_((bits & -65536).view(torch.float32))


def rounded_at_random(device):
    """Weights in bfloat16 that are updated in float32 and rounded at random, by their bits."""
    net = nn.Linear(6, 6).to(device, torch.bfloat16)
    moments = {p: torch.zeros_like(p, dtype=torch.float32) for p in net.parameters()}
    for _ in range(6):
        net.zero_grad()
        net(torch.randn(4, 6, device=device).bfloat16()).float().square().mean().backward()
        with torch.no_grad():
            for p, m in moments.items():
                m.mul_(0.9).add_(p.grad.float(), alpha=0.1)
                add_stochastic(p, -0.1 * m)
    return net.weight.float().sum().item()


def two_scalers(device):
    """Two networks with an optimizer and a scaler each, one of them fed with the other's autocast results."""
    kind = torch.device(device).type
    G = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 6)).to(device)
    D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
    og, od = (torch.optim.Adam(m.parameters(), 2e-4, betas=(0.5, 0.999)) for m in (G, D))
    sg, sd = torch.amp.GradScaler(kind), torch.amp.GradScaler(kind)
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(8, 1, device=device), torch.zeros(8, 1, device=device)
    for _ in range(8):
        real = torch.rand(8, 6, device=device)
        noise = torch.randn(8, 4, device=device)
        with torch.autocast(kind, dtype=torch.float16 if kind == "cuda" else torch.bfloat16):
            fake = G(noise)
            loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
        od.zero_grad()
        sd.scale(loss_d).backward()
        sd.step(od)
        sd.update()
        with torch.autocast(kind, dtype=torch.float16 if kind == "cuda" else torch.bfloat16):
            loss_g = bce(D(fake), ones)
        og.zero_grad()
        sg.scale(loss_g).backward()
        sg.step(og)
        sg.update()
    return loss_g.item()
