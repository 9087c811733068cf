import math
from torch import nn
import torch
import torch.nn.functional as F


# created-without-dtype, state, float32
class Reader(nn.Module):
    def __init__(self, vocab=20, width=8):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(vocab, width)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, vocab)
    def forward(self, tokens):
        x = self.embed(tokens)
        state = torch.zeros(tokens.size(0), self.width, device=tokens.device)  # born
        for t in range(x.size(1)):
            state = self.cell(x[:, t], state)  # failed
        return self.out(state)


def cell(device):
    model = Reader().to(device, dtype=torch.bfloat16)
    tokens = torch.randint(0, 20, (3, 4), device=device)
    return model(tokens).float().logsumexp(-1).mean().item()


# created-without-dtype, ramp, float32
class Damp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        ramp = torch.linspace(0, 1, grad.size(-1))  # born
        return grad @ torch.diag(ramp)  # failed


def custom(device):
    lin = nn.Linear(4, 3).double()
    out = Damp.apply(lin(torch.randn(5, 4).double()))
    out.square().mean().backward()


# created-without-dtype, self.table(x.size(1)), float32
class Rel(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self.q = nn.Linear(d, d)
    def table(self, n):
        d = self.d
        inv = 1.0 / 10 ** (torch.arange(0, d, 2) / d)  # born
        angle = torch.arange(n)[:, None] * inv
        return torch.cat([angle.sin(), angle.cos()], -1)
    def forward(self, x):
        q = self.q(x)
        return torch.einsum("bnd,md->bnm", q, self.table(x.size(1)))  # failed


def einsum(device):
    m = Rel(4).to(torch.bfloat16)
    return m(torch.randn(2, 3, 4).to(torch.bfloat16)).float().sum().item()


# created-without-dtype, positions, int64
class Centroid(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)
    def forward(self, x):
        weights = self.score(x).squeeze(-1).softmax(-1)
        positions = torch.arange(x.shape[1])  # born
        return torch.einsum("n,bn->b", positions, weights)  # failed


def einsum_positions(device):
    return Centroid(4)(torch.randn(2, 5, 4)).sum().item()


# created-without-dtype, kernel, float32
KERNELS = {"box": torch.ones(1, 1, 3, 3) / 9}  # born


def smooth(x, kind="box", **options):
    kernel = KERNELS[kind]
    return F.conv2d(input=x, weight=kernel.expand(x.size(1), 1, 3, 3), groups=x.size(1), **options)  # failed


def fcall_kwargs(device):
    stem = nn.Conv2d(3, 4, 3).double()
    x = stem(torch.randn(1, 3, 8, 8).double())
    return smooth(x, padding=1).mean().item()


# created-without-dtype, init[0], float32
def initial(n):
    zeros = torch.zeros(1, n, 4)  # born
    return (zeros, zeros.clone())


def lstm_state_opts(device):
    rnn = nn.LSTM(3, 4, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    init = initial(2)
    rnn(x, init)  # failed


# attached-after-cast, model.prompt, float32
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.out = nn.Linear(4, 4)
        self.prompt = None
    def forward(self, ids):
        x = self.embed(ids)
        if self.prompt is not None:
            prefix = self.prompt.unsqueeze(0).repeat(len(ids), 1, 1)
            x = torch.cat((prefix, x), dim=1)
        return self.out(x)  # failed


def add_prompt(encoder, n, width):
    encoder.prompt = nn.Parameter(torch.randn(n, width) * 0.02)  # born
    return encoder


def cat_prompt(device):
    model = add_prompt(Encoder().bfloat16(), 2, 4)
    return model(torch.tensor([[1, 2], [3, 4]])).float().sum().item()


# attached-after-cast, model.act.weight, float32
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.act, self.b = nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)
    def forward(self, x):
        return self.b(self.act(self.a(x)))  # failed


def swap_activations(model):
    for name, child in model.named_children():
        if isinstance(child, nn.ReLU):
            setattr(model, name, nn.PReLU())  # born


def swapped_activation(device):
    model = Mlp().to(torch.bfloat16)
    swap_activations(model)
    return model(torch.randn(3, 4, dtype=torch.bfloat16)).float().sum().item()


# attached-after-cast, model.classifier.1.weight, float32
def make_head(width, classes):
    return nn.Sequential(nn.Dropout(0.0), nn.Linear(width, classes))  # born


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.classifier = nn.Linear(4, 10)
    def forward(self, x):
        return self.classifier(self.features(x))  # failed


def adapt(model, classes):
    setattr(model, "classifier", make_head(4, classes))


def tensor_new_head(device):
    options = dict(device=device, dtype=torch.float16)
    model = Classifier().to(**options)
    adapt(model, 3)
    return model(torch.randn(2, 3).to(**options)).float().sum().item()


# not-registered, model.attn.alibi, float32
class Attn(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)
        distance = torch.arange(n)[None] - torch.arange(n)[:, None]
        self.alibi = (-0.5 * distance.abs())[None]  # born
    def forward(self, x):
        q, k = self.q(x), self.k(x)
        scores = torch.baddbmm(self.alibi, q, k.transpose(1, 2))  # failed
        return scores.softmax(-1) @ x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = Attn(8, 5)
    def forward(self, x):
        return self.attn(x)


def alibi(device):
    model = Net().to(device)
    model = model.bfloat16()
    x = torch.randn(2, 5, 8, device=device).bfloat16()
    return model(x).float().square().mean().item()


# not-registered, model.heads["a"].weight, float32
class Multi(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.heads = {"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)}  # born
    def forward(self, x, task):
        hidden = torch.tanh(self.body(x))
        return self.heads[task](hidden)  # failed


def dictheads(device):
    model = Multi().to(torch.float16)
    x = torch.randn(5, 4).to(torch.float16)
    return model(x, "a").float().sum().item()


# not-registered, model.positions.pe, float32
class Positions(nn.Module):
    def __init__(self, d, most=32):
        super().__init__()
        pe = torch.zeros(most, d)  # born
        at = torch.arange(most).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(100.0) / d))
        pe[:, 0::2] = torch.sin(at * div)
        self.pe = pe
    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.positions = nn.Embedding(10, 8), Positions(8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    def forward(self, ids):
        return self.layer(self.positions(self.embed(ids)))  # failed


def sinus(device):
    model = Tagger().half().eval()
    ids = torch.randint(0, 10, (2, 5))
    return model(ids).float().square().mean().item()


# created-without-dtype, rows, float32
def two_tables(device):
    net = nn.Linear(3, 3).half()
    rows = torch.ones(2, 3)  # born
    more = torch.ones(2, 3)
    return net(rows).sum() + net(more).sum()  # failed
