"""Recording runs none of the user's code, and nothing of the user's sees what recording reads."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import resolve_name

import devtrace
from devtrace.recording.columns.copies import is_pinned
from modes import Functions, Ops


def scripted() -> Any:
    return torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.Dropout()))


def loaded() -> Any:
    buffer = io.BytesIO()
    torch.jit.save(scripted(), buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("make", [scripted, loaded])
def test_a_module_of_torchscript_runs_and_is_a_call_with_its_tensors(make: Callable[[], Any]) -> None:
    model = make()
    with devtrace.record() as recording:
        out = model(torch.ones(1, 2))
        model.eval()
        model(torch.ones(1, 2))
    assert out.shape == (1, 2)
    assert recording.trace.notes == ()
    assert "model" in {module.path for module in recording.trace.modules}
    assert "model.0.weight" in {tensor.name for tensor in recording.trace.tensors}


class RanError(Exception):
    """A reader ran the user's code."""


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise RanError


class Private(nn.Module):
    """A module of which nothing may be asked that a call does not ask."""

    training = property(refuse, lambda self, value: None)
    named_modules = named_parameters = parameters = buffers = modules = refuse

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def __getattr__(self, name: str) -> Any:
        if name in ("_is_replica", "_devtrace"):
            raise RanError
        return super().__getattr__(name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner: torch.Tensor = self.inner(x)
        return inner


def test_a_module_s_own_methods_and_properties_do_not_run() -> None:
    with devtrace.record() as recording:
        model = Private()
        model(torch.ones(1, 2))
        model.double()
    assert recording.trace.notes == ()
    assert [module.path for module in recording.trace.modules] == ["model", "model.inner"]
    assert [move.tensors for move in recording.trace.moves] == [2]


def counted(name: str) -> Any:
    def get(self: Any) -> Any:
        Shy.asked += 1
        return vars(self)[name]

    return property(get, lambda self, value: vars(self).update({name: value}))


class Shy(torch.optim.SGD):
    """An optimizer that counts who asks for its groups and its state."""

    asked = 0
    param_groups, state = counted("groups"), counted("states")


def test_an_optimizer_s_properties_are_asked_as_often_as_without_a_recording() -> None:
    def asked(traced: bool) -> int:
        weight = nn.Parameter(torch.ones(2))
        optimizer = Shy([weight], 0.1, momentum=0.9)
        weight.grad = torch.ones(2)
        before = Shy.asked
        with devtrace.record() if traced else contextlib.nullcontext():
            optimizer.step()
        return Shy.asked - before

    assert asked(True) == asked(False)


class Nameless(threading.Thread):
    name = property(refuse, lambda self, value: None)


def test_a_thread_s_own_name_is_not_asked() -> None:
    done: list[torch.Tensor] = []
    with devtrace.record() as recording:
        thread = Nameless(target=lambda: done.append(torch.ones(2)))
        thread.start()
        thread.join()
    assert len(done) == 1
    assert "aten.ones" in [op.name for op in recording.trace.ops]


class Unanswering(torch.Tensor):
    """A subclass that answers nothing itself."""

    shape = device = dtype = nbytes = grad = property(refuse)
    untyped_storage = stride = storage_offset = is_pinned = refuse


def test_a_tensor_s_own_properties_do_not_run() -> None:
    x = torch.rand(3).as_subclass(Unanswering)
    with devtrace.record() as recording:
        y = torch.ones(3).mul_(x)
        torch.cat([x, y])
    assert recording.trace.notes == ()
    assert [tuple(tensor.shape) for tensor in recording.trace.ops[-1].inputs] == [(3,), (3,)]


class Watching(torch.Tensor):
    seen: list[str]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(resolve_name(func) or str(func))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


class Doubling(torch.autograd.Function):
    """Keeps a tensor for a backward pass of its own."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context: Any, *grads: torch.Tensor) -> torch.Tensor:
        (x,) = context.saved_tensors
        grad: torch.Tensor = grads[0] * 2 + 0 * x
        return grad


def everything() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        optimizer.zero_grad(set_to_none=False)
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    x = torch.ones(2, 4)
    x[0] = 1
    torch.split(x[x > 0], 1)
    x.to(torch.float64).copy_(x)
    torch.cat([x, x], out=torch.empty(4, 4))
    model.double().to("cpu")
    weight = torch.ones(4, requires_grad=True)
    watched = torch.ones(4).as_subclass(Watching)
    Doubling.apply(weight * watched).sum().backward()  # type: ignore[no-untyped-call]
    torch.stack([watched, watched]).to(torch.float64).sum()
    model.register_buffer("extra", watched)
    steps, lengths = torch.tensor([7, 6]), torch.tensor([2, 2])
    nn.CTCLoss()(torch.randn(7, 2, 6).log_softmax(-1), torch.ones(2, 2).long(), steps, lengths)
    with contextlib.suppress(RuntimeError):
        x @ x


def seen_by(mode: Functions | Ops, *, traced: bool, inside: bool) -> tuple[list[str], list[str]]:
    torch.manual_seed(0)
    Watching.seen = []
    record: Any = devtrace.record() if traced else contextlib.nullcontext()
    first, second = (record, mode) if inside else (mode, record)
    with first, second:
        everything()
    return mode.seen, Watching.seen


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("mode", [Functions, Ops])
def test_modes_and_subclasses_of_the_users_see_nothing_of_a_recording(mode: Any, inside: bool) -> None:
    assert seen_by(mode(), traced=True, inside=inside) == seen_by(mode(), traced=False, inside=inside)


def test_the_question_whether_a_copied_tensor_is_pinned_reaches_no_mode_of_the_users() -> None:
    x = torch.ones(2)
    with Ops() as ops, Functions() as functions:
        assert not is_pinned(x)
    assert (ops.seen, functions.seen) == ([], [])
