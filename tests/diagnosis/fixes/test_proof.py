"""An offered edit mends: programs whose edits once failed at the same line, raised something new or named nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fix_rounds import fixed, story
from folders import TESTS
from programs import Program
from warm import Warm

pytestmark = [pytest.mark.slow, pytest.mark.one_in(8)]

STUDENT = sorted((TESTS / "student").glob("*.py"))
HEAD = "import torch\nfrom torch import nn\n\n\n"
PROGRAMS = {
    "a line stands below the call that fills the dictionary": """\
def load(saved):
    saved["mean"] = torch.ones(3)
    saved["std"] = torch.ones(3)


def run(device):
    saved = {}
    model = nn.Linear(3, 3).to(device)
    load(saved)
    x = torch.ones(2, 3, device=device)
    return (model(x) - saved["mean"]) / saved["std"]
""",
    "a line stands below the call that gives the attribute its value": """\
class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = nn.Linear(3, 3).to(device)
        self.scale = None

    def prepare(self):
        self.scale = torch.full((3,), 2.0)

    def step(self, x):
        return (self.model(x) * self.scale).sum()


def run(device):
    trainer = Trainer(device)
    trainer.prepare()
    for _ in range(2):
        trainer.step(torch.ones(2, 3, device=device)).backward()
""",
    "the state of an optimizer moves after it is loaded": """\
def run(device):
    first = nn.Linear(3, 1)
    old = torch.optim.Adam(first.parameters())
    first(torch.ones(2, 3)).sum().backward()
    old.step()
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    print("resume")
    optimizer.load_state_dict(old.state_dict())
    model.load_state_dict(first.state_dict())
    model.to(device)
    model(torch.ones(2, 3, device=device)).sum().backward()
    optimizer.step()
""",
    "an edit names no variable of another function": """\
def centres(n):
    points = torch.linspace(0, 1, n)
    return points * 2 - 1


def run(device):
    model = nn.Linear(4, 4).to(device)
    grid = centres(4)
    return model(torch.ones(2, 4, device=device)) * grid
""",
    "an argument is moved, and not the result of the call": """\
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)

    def band(self, n):
        i = torch.arange(n)
        return (i[:, None] - i[None, :]).abs() < 2

    def forward(self, x):
        q = self.q(x)
        return F.scaled_dot_product_attention(q, x, x, attn_mask=self.band(x.shape[1]))


def run(device):
    return Attention().to(device)(torch.randn(2, 5, 8, device=device))
""",
    "what a line puts into items is moved there": """\
class Counts:
    device = "cpu"
    def rows(self, n):
        return torch.ones(n, device=self.device)


def inverse(x):
    return torch.ones_like(x) / x


def run(device):
    x, kept = torch.ones(4, device=device), Counts().rows(4)
    x[kept > 0] = inverse(kept[kept > 0])
    return x
""",
    "both constants of a line are moved": """\
MEAN = torch.tensor([0.4, 0.5, 0.6])
STD = torch.tensor([0.2, 0.2, 0.3])


def normalize(x):
    return (x - MEAN) / STD


def run(device):
    model = nn.Linear(3, 2).to(device)
    return model(normalize(torch.ones(4, 3, device=device)))
""",
    "all results of a loop that nobody kept are kept": """\
def run(device):
    model = nn.Linear(3, 2).to(device)
    loader = [(torch.ones(4, 3), torch.ones(4, 2), torch.ones(2)) for _ in range(2)]
    for x, y, w in loader:
        x.to(device)
        y.to(device)
        w.to(device)
        loss = ((model(x) - y) * w).sum()
        loss.backward()
""",
    "all lists of layers are registered": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.layers = [nn.Linear(2, 2) for _ in range(2)]
        self.gates = [nn.Linear(2, 2) for _ in range(2)]

    def forward(self, x):
        x = self.first(x)
        for layer, gate in zip(self.layers, self.gates):
            x = layer(x) * gate(x)
        return x


def run(device):
    return Net().to(device)(torch.ones(1, 2, device=device))
""",
    "values that come from one tensor are moved together": """\
class Jitter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x, pick):
        table = torch.arange(6.0).reshape(3, 2)
        chosen = table[pick]
        red = chosen[:, 0][:, None]
        blue = chosen[:, 1][:, None]
        x = x * self.weight
        y = x * red
        return y + blue


def run(device):
    return Jitter().to(device)(torch.ones(2, 4, device=device), torch.tensor([0, 2]))
""",
    "a tensor that an optimizer trains is made on the device": """\
def run(device):
    model = nn.Linear(3, 3).to(device)
    delta = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([delta], lr=0.1)
    for _ in range(2):
        loss = model(torch.ones(2, 3, device=device) + delta).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert delta.is_leaf
""",
    "an edit asks no variable for a device that it has only later": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        steps = torch.arange(4)
        x = x.to(self.layer.weight.device)
        return self.layer(x) * steps


def run(device):
    return Net().to(device)(torch.ones(2, 4))
""",
    "an edit asks no model for a device that moves only below": """\
def make():
    return nn.Linear(3, 3).cuda()


def run(device):
    model = nn.Linear(3, 3)
    weight = torch.ones(3)
    model.cuda()
    return make()(model.weight) * weight
""",
    "an edit asks no list for a device": """\
def forward(model, rows, device):
    scale = torch.linspace(0, 1, len(rows))
    rows = torch.tensor(rows, device=device)
    return model(rows) * scale[:, None]


def run(device):
    return forward(nn.Linear(2, 2).to(device), [[1.0, 2.0], [3.0, 4.0]], device)
""",
    "layers in a tuple and a sum beside them are registered": """\
class Mixture(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.experts = tuple(nn.Linear(4, 4) for _ in range(count))
        self.gate = nn.Linear(4, count)
        self.load = torch.zeros(count)

    def forward(self, x):
        gates = self.gate(x).softmax(-1)
        self.load = self.load + gates.sum(0).detach()
        return sum(gates[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


def run(device):
    model = Mixture(2).to(device)
    for _ in range(2):
        model(torch.ones(3, 4, device=device)).sum().backward()
""",
    "a named tuple's tensors are moved where they are used": """\
from typing import NamedTuple


class Stats(NamedTuple):
    mean: torch.Tensor
    std: torch.Tensor


def run(device):
    stats = Stats(torch.zeros(3), torch.ones(3))
    model = nn.Linear(3, 2).to(device)
    x = torch.ones(2, 3, device=device)
    return model((x - stats.mean) / stats.std)
""",
    "a lazy module is moved before its first call makes its parameters": """\
class Scorer:
    def __init__(self):
        self.model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 1))


def run(device):
    scorer = Scorer()
    x = torch.ones(2, 3, device=device)
    return scorer.model(x)
""",
    "all states in a list are moved where their module is": """\
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.ModuleList(nn.LSTM(4, 4) for _ in range(2))
        self.states = [(torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)) for _ in range(2)]

    def forward(self, x):
        states = []
        for lstm, state in zip(self.lstm, self.states):
            x, (h, c) = lstm(x, state)
            states.append((h.detach(), c.detach()))
        self.states = states
        return x


def run(device):
    model = Tagger()
    model.to(device)
    for _ in range(2):
        model(torch.ones(3, 2, 4, device=device)).sum().backward()
""",
    "a default argument is given no device of another parameter": """\
def scaled(x, weight=torch.ones(3)):
    first = x[:, 0]
    return x * weight * first[:, None]


def run(device):
    return scaled(nn.Linear(3, 3).to(device)(torch.ones(2, 3, device=device)))
""",
    "a replica makes its tensor where its own input is": """\
class Recurrent(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.cell = nn.GRUCell(4, 6)

    def forward(self, batch):
        hidden = torch.zeros(batch.shape[0], 6, device=self.device)
        for step in range(batch.shape[1]):
            hidden = self.cell(batch[:, step], hidden)
        return hidden


def run(device):
    model = nn.DataParallel(Recurrent(device).to(device), device_ids=[0, 1])
    return model(torch.ones(4, 3, 4).to(device))
""",
    "a variable that names no index is given the device of what it meets": """\
def centres(points, count):
    device = points.device.type
    sizes = torch.ones(count, device=device)
    mask = points[None, :, 0] > torch.arange(count, device=device)[:, None]
    return mask.sum(1) / sizes


def run(device):
    return centres(torch.rand(5, 2, device="cuda:1"), 3)
""",
    "a module that a class took to another device is brought back": """\
class Viewer:
    def __init__(self, model):
        self.model = model.cuda()


def run(device):
    device = torch.device("cuda:1")
    model = nn.Linear(3, 3).to(device)
    viewer = Viewer(model)
    return model(torch.ones(2, 3, device=device))
""",
    "what is moved once is not moved twice": """\
class Shift(nn.Module):
    def forward(self, x):
        if not hasattr(self, "lim"):
            self.lim = torch.tensor([4]).to(x.device)
        return x + self.lim // 2


def run(device):
    model = nn.Sequential(nn.Linear(3, 3), Shift())
    model(torch.ones(2, 3))
    model.to(device)
    return model(torch.ones(2, 3, device=device))
""",
    "what a fit has kept is registered where it is first given a value": """\
class Whiten(nn.Module):
    def fit(self, x):
        mean, scale = x.mean(0), x.std(0)
        self.mean: torch.Tensor = mean
        self.scale = scale
        if self.training:
            self.mean = self.mean.detach()
            self.scale = self.scale.detach()
        return self

    def forward(self, x):
        return (x - self.mean) / self.scale


def run(device):
    rows = torch.arange(12.0).reshape(4, 3)
    model = nn.Sequential(Whiten().fit(rows), nn.Linear(3, 2)).to(device)
    return model(rows.to(device))
""",
    "the backward pass is no way back to the lines that it differentiates": """\
class Scaler:
    def fit(self, rows):
        self.mean = rows.mean(0)
        self.scale = rows.std(0)
        return self

    def transform(self, rows):
        return (rows - self.mean) / self.scale

    def inverse(self, rows):
        return rows * self.scale + self.mean


def run(device):
    rows = torch.arange(12.0).reshape(4, 3)
    scaler = Scaler().fit(rows)
    inputs = scaler.transform(rows).to(device)
    model = nn.Linear(3, 3).to(device)
    hidden = model(inputs)
    loss = hidden.square().mean()
    loss.backward()
    return scaler.inverse(model(inputs))
""",
    "an edit takes the literal that the program uses": """\
def run(device):
    model = nn.Linear(3, 3)
    model.to("cuda:0")
    data = [torch.ones(2, 3) for _ in range(2)]
    for x in data:
        model(x)
""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_one_round_of_edits_repairs(text: str, warm: Warm, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(HEAD + text)
    rounds, _ = fixed(warm, Program(path, ("cuda:0",)))
    assert (rounds.last.ending, rounds.is_proven, len(rounds.runs)) == ("ended", True, 2), story(rounds)


@pytest.mark.parametrize("path", STUDENT, ids=lambda path: path.stem)
def test_rounds_of_edits_repair(path: Path, warm: Warm) -> None:
    rounds, _ = fixed(warm, Program(path, ("cuda:0",)))
    assert (rounds.last.ending, rounds.is_proven) == ("ended", True), story(rounds)
