import copy
import io
import math
from torch import nn
import torch
import torch.nn.functional as F


# stale-copy, optimizer.state[model.weight]["exp_avg"], float32
def step(model, optimizer, x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # born and failed


def adam(device):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(8, 4)
    step(model, optimizer, x)
    model.bfloat16()
    step(model, optimizer, x.bfloat16())


# stale-copy, slow.weight, float32
@torch.no_grad()
def follow(slow, net, rate=0.1):
    for a, b in zip(slow.parameters(), net.parameters()):
        a.data = torch.lerp(a.data, b.data, rate)  # failed


def deepcopy_opt(device):
    net = nn.Linear(4, 4)
    slow = copy.deepcopy(net)  # born
    net = net.half()
    follow(slow, net)


# stale-copy, ema.shadow["0.weight"], float32
class Ema:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {name: value.detach().clone() for name, value in model.named_parameters()}  # born
    def update(self, model):
        for name, value in model.named_parameters():
            old = self.shadow[name]
            self.shadow[name] = torch.lerp(value.detach(), old, self.decay)  # failed


def ema(device):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    ema = Ema(model)
    model.to(torch.bfloat16)
    for _ in range(2):
        ema.update(model)


# stale-copy, encoder.pos.table, float32
class Positions(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim, self.table = dim, None
    def forward(self, x):
        n = x.shape[1]
        if self.table is None or self.table.shape[0] < n:
            t = torch.arange(n).unsqueeze(1)
            div = torch.exp(torch.arange(0, self.dim, 2) * (-math.log(10000.0) / self.dim))
            table = torch.zeros(n, self.dim)  # born
            table[:, 0::2] = torch.sin(t * div)
            self.table = table
        return x + self.table[:n]


class Encoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = Positions(dim)
        self.ff = nn.Linear(dim, dim)
    def forward(self, ids):
        h = self.pos(self.emb(ids))
        return self.ff(h)  # failed


def lazy_positions(device):
    encoder = Encoder(20, 8)
    ids = torch.randint(0, 20, (2, 6))
    encoder(ids)
    encoder = encoder.to(torch.bfloat16)
    return encoder(ids).float().sum().item()


# stale-copy, ema.shadow["0.weight"], float32
class SlotEma:
    __slots__ = ("shadow",)
    def __init__(self, net):
        self.shadow = {k: v.detach().clone() for k, v in net.named_parameters()}  # born
    @torch.no_grad()
    def update(self, net):
        for k, v in net.named_parameters():
            self.shadow[k].lerp_(v, 0.1)  # failed


def slot_ema(device):
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    ema = SlotEma(net)
    net.double()
    ema.update(net)


# stale-copy, teacher.0.weight, float32
class Distill:
    def __init__(self, student):
        self.student = student
        self.teacher = copy.deepcopy(student).eval()  # born
    def loss(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)  # failed
        return F.mse_loss(self.student(x), wanted)


def teacher(device):
    student = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
    job = Distill(student)
    teacher = job.teacher
    student.bfloat16()
    return job.loss(torch.randn(6, 4).bfloat16()).float().item() + 1


# never-cast, model.head.weight, float16
def save(module):
    buffer = io.BytesIO()
    torch.save(copy.deepcopy(module).half(), buffer)
    buffer.seek(0)
    return buffer


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 6)
        self.head = nn.Linear(6, 2)
    def forward(self, x):
        return self.head(self.trunk(x).relu())  # failed


def ckpt_half(device):
    model = Net()
    restored = torch.load(save(model.head), weights_only=False)  # born
    model.head = restored
    return model(torch.ones(2, 4)).sum().item()


# never-cast, critic.0.weight, float32
def network(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))  # born


def play(policy, critic, state):
    action = policy(state)
    value = critic(state)  # failed
    return (action + value).mean()


def two_models(device):
    policy = network(8).bfloat16()
    critic = network(4)
    return play(policy, critic, torch.randn(3, 6, dtype=torch.bfloat16)).item()
