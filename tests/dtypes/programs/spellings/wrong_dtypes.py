from collections import OrderedDict
from torch import nn
import torch
import torch.nn.functional as F


# wrong-dtype, w, float32
# untraced: never-cast
class ScaledMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        w = weight.float()  # born
        ctx.save_for_backward(x, w)
        return x @ weight.t()
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w, grad.t() @ x  # failed


def custom_backward(device):
    weight = nn.Parameter(torch.randn(3, 4, dtype=torch.bfloat16))
    x = torch.randn(2, 4, dtype=torch.bfloat16, requires_grad=True)
    out = ScaledMatmul.apply(x, weight)
    out.sum().backward()


# wrong-dtype, head.weight, float64
def solve():
    torch.set_default_dtype(torch.float64)
    a = torch.eye(3) * 2
    return torch.linalg.solve(a, torch.ones(3)).sum()


def default(device):
    body = nn.Linear(4, 5)
    solve()
    head = nn.Linear(5, 2)  # born
    x = torch.ones(3, 4, dtype=torch.float32)
    head(torch.relu(body(x)))  # failed
    torch.set_default_dtype(torch.float32)


# wrong-dtype, h, float16
def encoder_in_half(device):
    text, decoder = nn.Linear(6, 6).half(), nn.Linear(6, 2)
    tokens = torch.randn(2, 6).half()
    h = text(tokens)  # born
    return decoder(h).sum().item()  # failed


# wrong-dtype, lin.w_int8, int8
# untraced: never-cast
class Int8Linear(nn.Module):
    def __init__(self, lin):
        super().__init__()
        w = lin.weight.data
        s = w.abs().max() / 127
        self.register_buffer("w_int8", torch.clamp((w / s).round(), -128, 127).to(torch.int8))  # born
        self.register_buffer("s", s)
    def forward(self, x):
        return (x @ self.w_int8.t()) * self.s  # failed


def int8_weight(device):
    lin = Int8Linear(nn.Linear(4, 3))
    return lin(torch.randn(2, 4)).sum().item()


# wrong-dtype, rows, float32
class Widen(nn.Module):
    def forward(self, h):
        return h.float()  # born


def layers_in_turn(device):
    steps = [nn.Linear(3, 3).half(), Widen(), nn.Linear(3, 1).half()]
    rows = torch.rand(2, 3).half()
    for step in steps:
        rows = step(rows)  # failed
    return rows.float().sum().item()


# wrong-dtype, h0, float64
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 5, batch_first=True)
    def start(self, x):
        return torch.zeros(1, len(x), 5).double()  # born
    def forward(self, x):
        h0 = self.start(x)
        out, _ = self.rnn(x, h0)  # failed
        return out[:, -1]


def lstmstate(device):
    return Model()(torch.randn(2, 4, 3)).sum().item()


# wrong-dtype, h, float32
class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
    def forward(self, x):
        h = self.norm(x.float())  # born
        return self.fc(h)  # failed


def norm_meant(device):
    model = Half().half()
    for m in model.modules():
        if isinstance(m, nn.LayerNorm):
            m.float()
    return model(torch.randn(3, 4).half()).float().sum().item()


# wrong-dtype, net.fc.weight, float16
def scaler(device):
    net = nn.Sequential(OrderedDict(fc=nn.Linear(6, 3))).to(device=device, dtype=torch.float16)  # born
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # failed
        scaler.update()


# wrong-dtype, net.0.weight, float16
def make(width, dtype):
    return nn.Sequential(nn.Linear(width, 6, dtype=dtype), nn.ReLU(), nn.Linear(6, 1, dtype=dtype))  # born


def scaler_unscale(device):
    net = make(4, torch.float16)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    x, y = torch.randn(5, 4), torch.randn(5, 1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (net(x.half()).float() - y).square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)  # failed


# wrong-dtype, rope.freqs, float64
class Rope(nn.Module):
    def __init__(self, dim):
        super().__init__()
        inv = 1.0 / 100 ** (torch.arange(0, dim, dtype=torch.float64) / dim)  # born
        self.freqs = torch.outer(torch.arange(5).double(), inv).cos()  # born

    def forward(self, q):
        return torch.einsum("btd,td->bt", q, self.freqs[: q.shape[1]])  # failed


def table_in_double(device):
    proj = nn.Linear(4, 4)
    rope = Rope(4)
    return rope(proj(torch.ones(2, 3, 4))).sum().item()


# wrong-dtype, t, float16
class Distiller(nn.Module):
    def __init__(self, student, teacher):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.adapt = nn.Linear(6, 4)
    def forward(self, x):
        s = self.student(x)
        with torch.no_grad():
            t = self.teacher(x.half())  # born
        return ((self.adapt(t) - s) ** 2).mean()  # failed


def teacher_in_half(device):
    teacher = nn.Sequential(nn.Linear(3, 6), nn.Tanh()).half().eval()
    d = Distiller(nn.Linear(3, 4), teacher)
    d(torch.randn(5, 3)).backward()


# wrong-dtype, bins, int64
def pool(bins, where, amount):
    bins.index_add_(0, where, amount)  # failed
    return bins


def whole_bins(device):
    bins = torch.zeros(4, dtype=torch.int64)  # born
    where, amount = torch.tensor([1, 1, 3]), torch.tensor([0.25, 0.5, 1.0])
    return pool(bins, where, amount).sum().item()
