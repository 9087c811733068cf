"""Where a tensor was born that an object keeps in a dictionary, under a name that is made, or in what a call wraps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import binary_cross_entropy_with_logits

import devtrace
from devtrace.explaining.reading.reader import Reader
from failing import Text, birth_of, culprit_of, edits_of, explained, fails


class Bank:
    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.windows: dict[int, torch.Tensor] = {}
        for size in sizes:
            self.windows[size] = torch.hann_window(size)

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.windows[x.shape[-1]]


class Memory:
    def __init__(self) -> None:
        self.slots: dict[str, torch.Tensor] = {}

    def reserve(self, slot: str, value: torch.Tensor) -> None:
        self.slots[slot] = value

    def add(self, x: torch.Tensor) -> None:
        self.slots["mean"] += x.mean(0)


def reserved(x: torch.Tensor) -> None:
    memory = Memory()
    memory.reserve("count", torch.zeros(1))
    memory.reserve("mean", torch.full((4,), 0.5))
    memory.add(x)


def levels() -> dict[str, torch.Tensor]:
    found = {}
    for stride in (4, 8):
        found[f"level{stride}"] = torch.full((4,), float(stride))
    return found


def of_levels(x: torch.Tensor) -> torch.Tensor:
    boxes = levels()
    return x - boxes["level8"]


class Spread(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        for index, value in enumerate((0.5, 2.0)):
            setattr(self, f"spread_{index}", torch.full((4,), value))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.layer(x) * getattr(self, "spread_1"))  # noqa: B009


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        setattr(self, "offset", torch.arange(4.0))  # noqa: B010

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.layer(x) + self.offset)


class Pair(NamedTuple):
    x: torch.Tensor
    mask: torch.Tensor

    @classmethod
    def of(cls, x: torch.Tensor) -> Pair:
        mask = torch.ones(4)
        return cls(x, mask)


@dataclass
class Sample:
    x: torch.Tensor
    keep: torch.Tensor

    def cuda(self) -> Sample:
        return Sample(self.x.cuda(), keep=self.keep)


def sample(x: torch.Tensor) -> torch.Tensor:
    keep = torch.eye(4)[0]
    it = Sample(x, keep).cuda()
    return it.x * it.keep


class Positions:
    tables: ClassVar[dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]]] = {}

    @classmethod
    def of(cls, length: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        key = (length, width)
        if key not in cls.tables:
            angle = torch.linspace(0, 1, width)
            cls.tables[key] = (angle.cos(), angle.sin())
        return cls.tables[key]


def turned(x: torch.Tensor) -> torch.Tensor:
    cos, sin = Positions.of(1, 4)
    return x * cos + x.flip(-1) * sin


class Ramps(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.layer = nn.Linear(4, 4)

    @cached_property
    def ramp(self) -> torch.Tensor:
        return torch.linspace(0, 1, 4)

    @lru_cache(maxsize=4)  # noqa: B019
    def window(self, size: int) -> torch.Tensor:
        return torch.hann_window(size)

    @cache  # noqa: B019
    def steps(self, size: int) -> torch.Tensor:
        steps = torch.arange(size)
        return steps / size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.ramp if self.kind == "ramp" else self.steps(4) if self.kind != "window" else self.window(4)
        return torch.as_tensor(self.layer(x) * scale)


LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "weighted": partial(binary_cross_entropy_with_logits, pos_weight=torch.full((4,), 2.0)),
}


def weighted(x: torch.Tensor) -> torch.Tensor:
    loss = LOSSES["weighted"]
    return loss(x, torch.ones_like(x))


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (lambda x: Bank((2, 4)).apply(x), "self.windows[size] = torch.hann_window(size)"),
        (reserved, 'memory.reserve("mean", torch.full((4,), 0.5))'),
        (of_levels, 'found[f"level{stride}"] = torch.full((4,), float(stride))'),
        (lambda x: Spread().to("cuda:0")(x), 'setattr(self, f"spread_{index}", torch.full((4,), value))'),
        (lambda x: Shifted().to("cuda:0")(x), 'setattr(self, "offset", torch.arange(4.0))  # noqa: B010'),
        (lambda x: x * Pair.of(x).mask, "mask = torch.ones(4)"),
        (sample, "keep = torch.eye(4)[0]"),
        (lambda x: Ramps("ramp").to("cuda:0")(x), "return torch.linspace(0, 1, 4)"),
        (lambda x: Ramps("window").to("cuda:0")(x), "return torch.hann_window(size)"),
        (lambda x: Ramps("steps").to("cuda:0")(x), "steps = torch.arange(size)"),
        (turned, "angle = torch.linspace(0, 1, width)"),
        (weighted, '"weighted": partial(binary_cross_entropy_with_logits, pos_weight=torch.full((4,), 2.0)),'),
    ],
)
def test_it_was_born_at_the_line_that_put_it_there(program: Callable[[torch.Tensor], Any], line: str) -> None:
    finding = explained(lambda: program(torch.ones(1, 4, device="cuda:0")))
    assert Path(__file__).read_text().splitlines()[birth_of(finding).line - 1].strip() == line


class Contrast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.keys = torch.ones(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.einsum("nc,ck->nk", self.layer(x), self.keys.clone().detach())


class Product(Contrast):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(torch.tensordot(self.layer(x), self.keys.detach(), dims=1))


@pytest.mark.parametrize("kind", [Contrast, Product])
def test_a_copy_that_is_handed_to_a_function_of_torchs_is_of_the_attribute(kind: type[nn.Module]) -> None:
    finding = explained(lambda: kind().to("cuda:0")(torch.ones(2, 4, device="cuda:0")))
    assert finding.cause == "not-registered"
    assert edits_of(finding) == ['self.register_buffer("keys", torch.ones(4, 3), persistent=False)']


class Mean:
    def __init__(self, net: nn.Module) -> None:
        self.kept: dict[str, torch.Tensor] = {}
        for name, parameter in net.named_parameters():
            self.kept[name] = parameter.detach().clone()

    def update(self, net: nn.Module) -> None:
        for name, parameter in net.named_parameters():
            self.kept[name] = 0.9 * self.kept[name] + 0.1 * parameter.detach()


@fails("untraced", cause="stale-copy", edits=["", "mean = Mean(net)"])
def test_a_copy_of_each_parameter_in_a_dictionary_is_older_than_the_move() -> None:
    net = nn.Linear(4, 1)
    mean = Mean(net)
    net.to("cuda:0")
    mean.update(net)


class Distances(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", torch.zeros(2), persistent=False)

    def widen(self, size: int) -> None:
        self.bias = torch.arange(float(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] > len(self.bias):
            self.widen(x.shape[-1])
        return x + self.bias


@fails("untraced", message=Text("before `model.1.bias` was attached"), help=Text(begins="move it before it is used:"))
def test_a_buffer_that_a_method_of_its_layer_made_was_attached_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 4), Distances()).to("cuda:0")
    model(torch.ones(1, 4, device="cuda:0"))


def scaled(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return x * by


def timed(function: Callable[..., torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
    return function(*args, **kwargs)


class Retried:
    def __init__(self, times: int) -> None:
        self.times = times

    def run(self, name: str, function: Callable[..., torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
        return function(*args, **kwargs)


class Passing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner(*args, **kwargs)


class Adding(nn.Module):
    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return x + others[1]


def by_a_function() -> None:
    x = torch.ones(3, device="cuda:0")
    timed(scaled, x, torch.arange(3.0) / 3)


def by_a_method() -> None:
    x = torch.ones(3, device="cuda:0")
    Retried(2).run("a", scaled, x, torch.arange(3.0) / 3)


def first_of_all() -> None:
    scale = torch.ones(3, device="cuda:0")
    timed(scaled, torch.arange(3.0) / 3, scale)


def through_a_module() -> None:
    net = Passing().to("cuda:0")
    net(torch.arange(3.0) / 3)


def beside_a_parameter() -> None:
    x = torch.ones(3, device="cuda:0")
    Adding()(x, x, torch.arange(3.0) / 3)


@pytest.mark.parametrize(
    ("program", "culprit"),
    [
        (by_a_function, "by"),
        (by_a_method, "by"),
        (first_of_all, "x"),
        (through_a_module, "args[0]"),
        (beside_a_parameter, "others[1]"),
    ],
)
def test_what_goes_through_starred_arguments_was_born_in_the_call_that_gave_them(
    program: Callable[[], object], culprit: str
) -> None:
    finding = explained(program)
    assert culprit_of(finding).name == culprit
    assert birth_of(finding).function == program.__name__
    assert [edit.after.count("torch.arange(3.0, device=") for edit in finding.edits] == [1]


def scaled_by_word(x: torch.Tensor, *rest: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
    return x * (rest[0] if scale is None else scale)


@fails("untraced", born=Text("torch.arange(3.0)"))
def test_a_parameter_that_takes_a_word_only_is_none_of_starred_arguments() -> None:
    given = [torch.ones(3, device="cuda:0"), torch.zeros(3)]
    weights = {"scale": torch.arange(3.0)}
    scaled_by_word(*given, **weights)


def of_stacked_models(x: torch.Tensor) -> None:
    models = [nn.Linear(4, 2) for _ in range(3)]
    params, buffers = stack_module_state(models)
    base = nn.Linear(4, 2).to("cuda:0")
    vmap(lambda own, kept: functional_call(base, (own, kept), (x,)))(params, buffers)


def of_pairs_by_name(x: torch.Tensor) -> None:
    pairs = [(name, [torch.full((4,), value)]) for name, value in (("low", 0.5), ("high", 2.0))]
    names, tables = zip(*pairs, strict=True)
    found: Any = tables
    found = {name: table[0] for name, table in zip(names, found, strict=True)}
    x * found["high"]


def of_a_state_that_replaces_a_list(x: torch.Tensor) -> None:
    state: Any = [torch.zeros(4), torch.ones(4)]
    rest: int
    state, rest = state, 1
    state, rest = {"mean": state[rest]}, 2
    x - state["mean"]


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (of_stacked_models, 'own["weight"]'),
        (of_pairs_by_name, 'found["high"]'),
        (of_a_state_that_replaces_a_list, 'state["mean"]'),
    ],
)
def test_a_name_that_was_a_list_before_it_was_a_dictionary_is_read_as_what_it_is(
    program: Callable[[torch.Tensor], object], name: str
) -> None:
    culprit = explained(lambda: program(torch.ones(5, 4, device="cuda:0"))).culprit
    assert culprit is not None
    assert (culprit.name, culprit.device) == (name, "cpu")


def test_a_birth_that_cannot_be_read_costs_the_sentence_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LookupError("a shape of source that nobody thought of")

    monkeypatch.setattr(Reader, "_find_birth", fail)
    with devtrace.simulate("cuda:1"), pytest.raises(RuntimeError) as raised:
        of_a_state_that_replaces_a_list(torch.ones(5, 4, device="cuda:0"))
    text = str(devtrace.explain(raised.value))
    assert '`state["mean"]` is on cpu' in text
    assert "was not read in full: LookupError" in text


@fails("untraced", born=None)
def test_what_a_list_gives_back_was_not_made_on_that_line() -> None:
    row = [torch.ones(2)].pop()
    row + torch.ones(2, device="cuda:0")


@fails("untraced", edits=['made["by"] = made["by"].float()'])
def test_an_element_is_not_read_as_another_one_of_its_dictionary() -> None:
    def arrays() -> dict[str, torch.Tensor]:
        return {"at": torch.as_tensor(np.arange(2)), "by": torch.as_tensor(np.ones(2)), "x": torch.ones(2)}

    made = {key: each.to("cuda:0") for key, each in arrays().items()}
    made["x"].index_add_(0, made["at"], made["by"])
