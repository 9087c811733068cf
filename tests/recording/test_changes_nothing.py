"""What a program sees of itself is what it sees plain: tracebacks while it handles an error, depth, profiles, modes."""

from __future__ import annotations

import json
import math
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from operator import attrgetter
from typing import Any, ClassVar
from unittest import mock

import pytest
import torch
from torch import nn
from torch.testing._internal.logging_tensor import LoggingTensor

import devtrace
from devtrace.runtime.patches import Patches
from folders import TESTS
from modes import Functions

WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "recorded": devtrace.record,
    "simulated": lambda: devtrace.simulate("cuda:1"),
    "both": lambda: devtrace.record(simulate="cuda:1"),
}
way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class Around(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(7, 7)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0]


def frames(run: Callable[[], Any]) -> list[str]:
    try:
        run()
    except Exception as error:  # noqa: BLE001 (each kind of error is asked)
        return [f"{frame.name} {frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)][1:]
    raise AssertionError("it did not raise")


FAILING: dict[str, Callable[[], Any]] = {
    "a module": lambda: Around(Around(nn.Linear(4, 8)))(torch.ones(2, 3)),
    "an operator": lambda: torch.ones(2, 3) @ torch.ones(2, 3),
    "an index": lambda: torch.ones(3)[5],
    "a function of autograd": lambda: Doubled.apply(torch.ones(2, 3, requires_grad=True)),  # type: ignore[no-untyped-call]
    "its own error": lambda: Around(nn.Linear(4, 8))(None),
    "a move": lambda: torch.ones(3).to("nowhere"),
    "a factory": lambda: torch.zeros(3, device="nowhere"),
    "a number of several": lambda: torch.ones(3).item(),
}


@way
@pytest.mark.parametrize("run", FAILING.values(), ids=FAILING)
def test_an_error_that_is_handled_has_the_frames_of_the_program(run: Callable[[], Any], way: Any) -> None:
    plain = frames(run)
    with way():
        assert frames(run) == plain


def test_a_mode_of_the_programs_sees_the_same_traceback() -> None:
    def run() -> list[str]:
        with Functions():
            return frames(FAILING["an operator"])

    plain = run()
    with devtrace.record():
        assert run() == plain


def deepest() -> int:
    """Return how deep modules can be nested, about."""
    for depth in range(100, 400, 10):
        model: nn.Module = nn.Identity()
        for _ in range(depth):
            model = Around(model)
        try:
            model(torch.ones(1))
        except RecursionError:
            return depth
    return 400


@way
def test_modules_can_be_nested_as_deep_as_plain(way: Any) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(800)
    try:
        plain = deepest()
        with way():
            assert deepest() == plain
        assert sys.getrecursionlimit() == 800
    finally:
        sys.setrecursionlimit(limit)


def called(run: Callable[[], Any]) -> Any:
    """Return what a TorchFunctionMode sees of a run."""
    with Functions(lambda func: getattr(func, "__name__", str(func))) as functions:
        run()
    return functions.seen


class Named(torch.Tensor):
    """A subclass that sees its calls."""

    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


def with_all_kinds(device: str) -> None:
    x = torch.ones(2, device=device)
    (x + x).sum().item()
    x.device, x.is_cuda, x.shape
    moved = torch.zeros(2).to(device)
    torch.tensor([1.0, 2.0], device=device).cpu().tolist()
    torch.rand_like(moved)
    torch.cat([x, moved]).float()
    x[0] = 3
    nn.functional.dropout(x, 0.5)


def seen_by_a_subclass(device: str) -> list[str]:
    Named.seen.clear()
    x = torch.ones(3, device=device).as_subclass(Named)
    y = (x + 1).sum()
    y.to("cpu").item()
    x[0] = 3
    torch.stack([x, x]).cpu()
    x.device, x.is_cuda
    torch.zeros_like(x)
    return [*Named.seen]


@pytest.mark.parametrize("seen", [lambda device: called(lambda: with_all_kinds(device)), seen_by_a_subclass])
def test_a_function_mode_and_a_subclass_see_the_calls_of_their_program_alone(seen: Callable[[str], list[str]]) -> None:
    plain = seen("cpu")
    with devtrace.record():
        assert seen("cpu") == plain
    for simulated in (devtrace.simulate("cuda:1"), devtrace.record(simulate="cuda:1")):
        with simulated:
            assert seen("cuda:0") == plain


def profiled(run: Callable[[], Any]) -> Iterator[tuple[str, int]]:
    with torch.profiler.profile() as profile:
        run()
    return iter(sorted(Counter(event.name for event in profile.events()).items()))


@way
def test_a_profile_counts_each_operator_once(way: Any) -> None:
    model = nn.Linear(3, 3)

    def step() -> None:
        model(torch.ones(2, 3)).sum()

    step()
    plain = dict(profiled(step))
    with way() or nullcontext():
        assert dict(profiled(step)) == plain


REPLACED = [line.split("\t") for line in (TESTS / "data/replaced.tsv").read_text().splitlines() if line[0] != "#"]
SUBCLASSES: tuple[Any, ...] = (
    *(torch.Tensor, nn.Parameter, Named, LoggingTensor, type("Bare", (torch.Tensor,), {})),
    type("Silent", (torch.Tensor,), {"__torch_function__": torch._C._disabled_torch_function_impl}),
)


def arguments(text: str, kind: Any) -> Any:
    def made(found: dict[str, Any]) -> Any:
        name, shape = next(iter(found.items()), ("", None))
        if shape is None:
            return getattr(torch, name) if name else found
        plain = torch.arange(math.prod(shape)).reshape(shape).to(getattr(torch, name))
        of_kind = LoggingTensor(plain) if kind is LoggingTensor else plain.as_subclass(kind)
        return plain if "plain" in found else of_kind.requires_grad_(plain.is_floating_point())

    return json.loads(text, object_hook=made)


def answer(function: Any, row: list[str], kind: Any) -> Any:
    given, by_keyword = (arguments(text, kind) for text in (*row[1:], "[]")[:2])
    torch.manual_seed(0)
    try:
        made = (function if callable(function) else function.__get__)(*given, **dict(by_keyword))
    except Exception as error:  # noqa: BLE001 (each kind of error is asked)
        return repr(error)
    is_alias: Any = torch._C._is_alias_of  # type: ignore[attr-defined]
    shares = [each is made or is_alias(each, made) for each in given if type(each) is type(made) is kind]
    return re.sub(r"0x\w+|(?<=Backward)\d", "", repr(made)), shares


@way
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SUBCLASSES)
def test_what_is_replaced_answers_a_subclass_as_torchs_own(kind: Any, way: Any) -> None:
    rows = [row for row in REPLACED if row[1] and not (row[0][-1] == "_" and kind is LoggingTensor)]  # `apply_` ends it
    own = [attrgetter(row[0])(torch) for row in rows]
    plain = list(map(answer, own, rows, repeat(kind)))
    with mock.patch.object(Patches, "set", autospec=True, side_effect=Patches.set) as noted, way():
        for row, function, expected in zip(rows, own, plain, strict=True):
            if (now := attrgetter(row[0])(torch)) is not function or "Tensor" not in row[0][-6:]:  # a legacy type
                assert answer(now, row, kind) == expected, row
    owners = [call.args[1:3] for call in noted.call_args_list]
    paths = (
        (f"{owner.__module__}." if isinstance(owner, type) else "", owner.__name__, name) for owner, name in owners
    )
    left = {f"{module}{owner}.{name}" for module, owner, name in paths} - {f"torch.{row[0]}" for row in REPLACED}
    groups = tuple(f"torch.{row[0]}" for row in REPLACED if row[0].endswith("."))
    assert [name for name in left if name.startswith("torch.") and not name.startswith(groups)] == []
