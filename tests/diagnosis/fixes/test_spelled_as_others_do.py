"""Bugs as issues of other projects have them: what is named, and the edit, whatever way they are spelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

import devtrace
from failing import Text, culprit_of, edits_of, error_of, fails

# Which device is meant: a module that was moved computes where its parameters are.


class Boxes(nn.Module):
    sizes = (16.0, 32.0)

    @property
    def corners(self) -> torch.Tensor:
        half = torch.tensor(self.sizes) / 2
        return torch.stack([-half, half], dim=1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        shifts = torch.arange(features.shape[1], device=features.device).float()
        return shifts[:, None, None] + self.corners[None]


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Linear(3, 6)
        self.boxes = Boxes()

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.boxes(self.backbone(image)))


def test_what_a_layer_without_parameters_makes_where_its_input_is_is_not_odd() -> None:
    error = error_of(lambda: Detector().cuda()(torch.ones(1, 5, 3).cuda()))
    assert error.devices == ("cuda:0", "cpu")
    assert [line for line in edits_of(error) if "corners" in line or "self.sizes" in line]


class Fourier(nn.Module):
    def forward(self, t: torch.Tensor) -> torch.Tensor:
        bands = torch.zeros(4, device=t.device)
        steps = torch.cumsum(torch.ones(4) * 0.5, dim=0).sqrt().exp().log().square()
        return t[:, None] * (bands + steps)


class Clock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = Fourier()
        self.scale = nn.Linear(1, 1)

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.embed(self.scale(t[:, None])[:, 0]))


def test_most_of_the_work_on_the_cpu_does_not_turn_what_a_moved_model_means() -> None:
    error = error_of(lambda: Clock().to("cuda:0")(torch.ones(3, device="cuda:0")))
    assert (culprit_of(error).name, error.devices) == ("steps", ("cuda:0", "cpu"))
    assert len(edits_of(error)) == 1


# An edit beside a neighbour's move is of the tensor itself.


class Labelled:
    """A tensor with names, by `__torch_function__`."""

    def __init__(self, data: torch.Tensor, dims: tuple[str, ...]) -> None:
        self.data, self.dims = data, dims

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raw = [each.data if isinstance(each, Labelled) else each for each in args]
        return cls(func(*raw, **(kwargs or {})), ("row",))

    def to(self, device: str) -> Labelled:
        return Labelled(self.data.to(device), self.dims)


@fails(edits=['table["shift"] = table["shift"].to(device)'])
def test_what_is_beside_a_moved_tensor_in_another_call_is_not_moved_for_it() -> None:
    device = "cuda:0"
    table = {"shift": torch.ones(3)}
    rows = Labelled(torch.ones(2, 3), ("row",)).to(device)
    torch.add(rows, table["shift"])  # type: ignore[call-overload]


class Interval:
    def __init__(self, low: torch.Tensor, unit: str) -> None:
        self.low, self.unit = low, unit

    def on(self, device: str) -> Interval:
        return Interval(self.low.to(device), self.unit)


def test_the_arguments_of_one_call_are_not_those_of_another() -> None:
    def program() -> None:
        device = "cuda:0"
        interval = Interval(torch.zeros(3), "m").on(device)
        pair = [interval.low, torch.ones(3)]
        torch.minimum(*pair)

    error = error_of(program)
    assert error.edits
    assert not any("unit" in line for line in edits_of(error))


# A layer that is made by the first call.


class Projected(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner: nn.Module | None = None

    def _build(self, width: int) -> None:
        self.inner = nn.Sequential(nn.Linear(width, 4), nn.LayerNorm(4))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if self.inner is None:
            self._build(values.shape[-1])
        assert self.inner is not None
        return torch.as_tensor(self.inner(values))


@fails(edits=["self.inner.to(values.device)"])
def test_a_layer_that_the_first_call_builds_is_moved_to_what_it_is_called_with() -> None:
    model = nn.Sequential(nn.Linear(5, 7), Projected()).to("cuda:0")
    model(torch.ones(2, 5, device="cuda:0"))


class Pool(nn.Module):
    def prepare(self, x: torch.Tensor) -> None:
        if hasattr(self, "score"):
            return
        self.score = nn.Linear(x.size(1), 1)
        self.mix = nn.Linear(x.size(1), 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.prepare(x)
        weights = self.score(x).softmax(0)
        return torch.as_tensor(self.mix(weights * x))


def test_all_layers_that_the_first_call_builds_are_moved_that_its_line_runs() -> None:
    error = error_of(lambda: Pool().to("cuda:0")(torch.ones(2, 5, device="cuda:0")))
    assert "self.score.to(x.device)" in edits_of(error)


class Direct(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head: nn.Module | None = None

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        if self.head is None:
            self.head = nn.Linear(batch.size(1), 2)
        return torch.as_tensor(self.head(batch))


@fails(edits=["self.head = nn.Linear(batch.size(1), 2).to(batch.device)"])
def test_a_layer_that_forward_itself_makes_is_moved_to_its_input() -> None:
    Direct().to("cuda:0")(torch.ones(2, 5, device="cuda:0"))


# Parameters in a list.


class Factors(nn.Module):
    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.factors = [nn.Parameter(torch.ones(size, 2)) for size in sizes]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.stack([each[rows] for each in self.factors]).sum(0)


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperatures = {}
        for task in ("a", "b"):
            self.temperatures[task] = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        return x / self.temperatures[task]


@fails(
    edits=["self.factors = nn.ParameterList([nn.Parameter(torch.ones(size, 2)) for size in sizes])"],
    help=Text(begins="keep the parameters in a ParameterList"),
)
def test_parameters_in_a_list_are_kept_in_a_list_of_torchs() -> None:
    model = Factors([3, 4])
    model.to("cuda:0")
    model(torch.zeros(2, dtype=torch.long, device="cuda:0"))


@fails(edits=["self.temperatures = nn.ParameterDict()"])
def test_parameters_in_a_dictionary_are_kept_in_one_of_torchs() -> None:
    model = Heads().to("cuda:0")
    model(torch.ones(3, 2, device="cuda:0"), "b")


# A line is not written above what makes the tensor.


class Slots:
    def __init__(self, count: int) -> None:
        self.keys = torch.zeros(count, 2)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, slots: Slots) -> torch.Tensor:
        slots.keys.copy_(slots.keys.add(self.map(x)))
        return slots.keys


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def set_up(self, count: int) -> None:
        self.slots = [Slots(count) for _ in self.layers]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, slots in zip(self.layers, self.slots, strict=True):
            x = layer(x, slots)
        return x


def test_no_line_is_added_above_the_call_that_makes_what_it_would_move() -> None:
    def program() -> None:
        device = "cuda:0"
        net = Cached().to(device)
        net.set_up(3)
        net(torch.ones(3, 2, device=device))

    error = error_of(program)
    lines = [edit.line for edit in error.edits if "net.slots" in edit.after]
    assert error.edits
    assert all("net.set_up" in _line(number) for number in lines)


def _line(number: int) -> str:
    with open(__file__, encoding="utf-8") as file:
        return file.readlines()[number - 1]


# The story of a tensor goes forward.


class Schedule:
    def __init__(self, steps: int) -> None:
        betas = torch.linspace(0.1, 0.2, steps)
        kept = 1.0 - betas
        product = torch.cumprod(kept, dim=0)
        self.root = product.sqrt()

    def at(self, t: torch.Tensor) -> torch.Tensor:
        return self.root[t]


def test_no_line_that_ran_before_the_tensor_was_created_follows_it() -> None:
    error = error_of(lambda: Schedule(5).at(torch.zeros(2, dtype=torch.long, device="cuda:0")))
    labels = [(line.label, line.site.text) for line in error.lines]
    assert labels[0] == ("Created", "self.root = product.sqrt()")
    assert not [text for label, text in labels if label == "Then" and ("kept" in text or "product" in text)]


# What has no name on the line is what a call on it gave.


def lower(count: int) -> torch.Tensor:
    return torch.ones(count, count).tril() == 0


@fails(
    name="make_mask(scores.size(0))",
    edits=['(scores * 2).masked_fill(make_mask(scores.size(0)).to(scores.device), float("-inf"))'],
)
def test_what_a_lambda_made_is_moved_where_it_is_called() -> None:
    make_mask: Callable[[int], torch.Tensor] = lambda n: torch.tril(torch.ones(n, n)) == 0  # noqa: E731
    scores = torch.ones(3, 3, device="cuda:0")
    (scores * 2).masked_fill(make_mask(scores.size(0)), float("-inf"))


def test_what_a_function_made_is_moved_where_it_is_called_by_another_name() -> None:
    masks = {"causal": lower}

    def program() -> None:
        scores = torch.ones(3, 3, device="cuda:0")
        hidden = masks["causal"]
        (scores + 1).masked_fill(hidden(3), 0.0)

    assert edits_of(error_of(program)) == ["(scores + 1).masked_fill(hidden(3).to(scores.device), 0.0)"]


# A list has no `.cpu()`, its tensors have.


class Meter:
    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []

    def mean(self) -> float:
        return float(np.mean(np.array(self.seen)))


@fails(edits=["return float(np.mean(np.array([each.cpu() for each in self.seen])))"])
def test_the_tensors_of_a_list_that_numpy_reads_are_copied_one_by_one() -> None:
    meter = Meter()
    meter.seen += [torch.ones((), device="cuda:0"), torch.zeros((), device="cuda:0")]
    meter.mean()


@fails(edits=["np.asarray([each.cpu() for each in list(losses.values())])"])
def test_what_a_call_lists_for_numpy_is_copied_one_by_one() -> None:
    losses = {"a": torch.ones((), device="cuda:0"), "b": torch.zeros((), device="cuda:0")}
    np.asarray(list(losses.values()))


# One bug that several tasks ran into is one finding.


def test_an_error_that_the_same_line_raised_again_is_counted_in_one_finding() -> None:
    async def ask(layer: nn.Module, scale: torch.Tensor) -> torch.Tensor:
        await asyncio.sleep(0)
        return torch.as_tensor(layer(torch.ones(1, 2, device="cuda:0")) / scale)

    async def serve() -> list[Any]:
        layer, scale = nn.Linear(2, 2).to("cuda:0"), torch.ones(2)
        return await asyncio.gather(*(ask(layer, scale) for _ in range(3)), return_exceptions=True)

    with devtrace.record(simulate="cuda:1") as recording:
        asyncio.run(serve())
    (error,) = [each for each in recording.report.findings if each.severity == "error"]
    assert (culprit_of(error).name, error.count) == ("scale", 3)
