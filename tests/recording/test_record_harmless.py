"""Recording changes nothing: values, RNG, gradients, identity, memory, checkpoints, stacks, hooks and patches."""

from __future__ import annotations

import copy
import gc
import io
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd import forward_ad
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

import devtrace
from devtrace.trace.checks import broken_rule
from modes import Ops


def surroundings() -> list[object]:
    """All that a recording puts in place somewhere."""
    registry = torch.nn.modules.module
    return [
        torch._C._len_torch_dispatch_stack(),
        nn.Module.__call__,
        nn.Module._apply,
        threading.Thread.start,
        threading.Thread._bootstrap_inner,  # type: ignore[attr-defined]
        torch.jit._trace._trace_impl,
        torch.jit.trace_module,
        torch.ctc_loss,
        dict(registry._global_parameter_registration_hooks),
        dict(registry._global_module_registration_hooks),
        dict(_global_optimizer_pre_hooks),
        dict(_global_optimizer_post_hooks),
        torch.optim.Optimizer.load_state_dict,
        torch._C._len_torch_function_stack(),
        hasattr(torch.UntypedStorage, "_devtrace_stamp"),
    ]


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    before = surroundings()
    yield
    assert surroundings() == before


Step = Callable[[dict[str, Any], random.Random], None]


def _module(objects: dict[str, Any], pick: random.Random) -> None:
    objects["x"] = objects["model"](objects["x"].detach())


def _train(objects: dict[str, Any], pick: random.Random) -> None:
    objects["optimizer"].zero_grad()
    objects["model"](torch.rand(3, 4)).pow(2).sum().backward()
    objects["optimizer"].step()


def _view(objects: dict[str, Any], pick: random.Random) -> None:
    objects["x"] = objects["x"].reshape(-1)[: pick.randint(4, 12)].repeat(3)[:12].view(3, 4)


def _write(objects: dict[str, Any], pick: random.Random) -> None:
    objects["x"] = objects["x"].detach().clone()
    objects["x"][pick.randint(0, 2)] *= 2
    objects["x"].add_(torch.randn_like(objects["x"]))


def _caught(objects: dict[str, Any], pick: random.Random) -> None:
    try:
        objects["x"] @ objects["x"]
    except RuntimeError as error:
        objects["errors"].append(str(error))


def _lists(objects: dict[str, Any], pick: random.Random) -> None:
    parts = torch.split(objects["x"], 1)
    objects["x"] = torch.cat([part + index for index, part in enumerate(parts)])


def _mask(objects: dict[str, Any], pick: random.Random) -> None:
    mask = objects["x"] > objects["x"].mean()
    objects["x"] = torch.where(mask, objects["x"], torch.zeros(()))
    objects["seen"].append(objects["x"][mask].sum().item())


def _load(objects: dict[str, Any], pick: random.Random) -> None:
    objects["model"].load_state_dict(copy.deepcopy(objects["model"].state_dict()))


def _cast(objects: dict[str, Any], pick: random.Random) -> None:
    objects["model"].double().float()


STEPS: list[Step] = [_module, _train, _view, _write, _caught, _lists, _mask, _load, _cast]


def run(steps: list[Step], seed: int, traced: bool) -> list[Any]:
    torch.manual_seed(seed)
    objects: dict[str, Any] = {
        "model": nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3), nn.Tanh()),
        "errors": [],
        "seen": [],
    }
    objects["optimizer"] = torch.optim.Adam(objects["model"].parameters())
    objects["x"] = torch.rand(3, 4)
    names = {id(value): type(value) for value in objects["model"].parameters()}
    pick = random.Random(seed)
    with devtrace.record() if traced else nullcontext() as recording:
        for step in steps:
            step(objects, pick)
    if recording:
        assert recording.trace.notes == ()
        assert broken_rule(recording.trace) is None
    assert {id(value): type(value) for value in objects["model"].parameters()} == names
    gradients = [None if p.grad is None else p.grad.clone() for p in objects["model"].parameters()]
    state = list(objects["model"].state_dict().values())
    return [objects["x"].detach(), *state, *gradients, torch.get_rng_state(), objects["errors"], objects["seen"]]


@settings(deadline=None, max_examples=40)
@given(chosen=st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=8), seed=st.integers(0, 10**6))
def test_a_traced_program_computes_what_it_computes_untraced(chosen: list[int], seed: int) -> None:
    steps = [STEPS[index] for index in chosen]
    for plain, traced in zip(run(steps, seed, False), run(steps, seed, True), strict=True):
        if isinstance(plain, torch.Tensor):
            assert plain.dtype == traced.dtype
            assert torch.equal(plain, traced)
        else:
            assert plain == traced


def test_no_tensor_outlives_its_owner() -> None:
    with devtrace.record() as recording:
        x = torch.rand(3, requires_grad=True)
        y = (x * 2).view(3, 1).sum()
        y.backward()
        objects: list[object] = [x, y, x.untyped_storage(), y.untyped_storage()]
        alive = [weakref.ref(each) for each in objects]
        objects.clear()
        del x, y
        gc.collect()
        assert [ref() for ref in alive] == [None] * 4
    assert len(recording.trace.ops)


def test_what_lives_until_the_process_ends_ends_without_a_word() -> None:
    program = """
import torch, devtrace
with devtrace.record(simulate="cuda:1"):
    net = torch.nn.Linear(2, 2).cuda()
    adam = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2, device="cuda")).sum().backward()
    adam.step()
    torch.kept = adam, torch.eye(3).to_sparse()  # a module's globals end after devtrace's own
print(len(torch.kept))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2\n", "")


def test_no_tensor_of_a_failing_function_outlives_the_error() -> None:
    alive: list[weakref.ref[torch.Tensor]] = []

    def fail() -> None:
        x = torch.rand(3)
        alive.append(weakref.ref(x))
        x.view(7)

    try:
        with devtrace.record():
            fail()
    except RuntimeError:
        pass
    gc.collect()
    assert alive[0]() is None


def test_a_gradient_is_stolen_and_not_copied() -> None:
    w = torch.rand(3, requires_grad=True)
    with devtrace.record() as recording:
        (w * 2).sum().backward()
    accumulated = {op.name for op in recording.trace.ops if op.phase == "backward"}
    assert not {"aten.new_empty_strided", "aten.clone", "aten.copy_"} & accumulated


def test_a_checkpoint_is_the_same_byte_for_byte() -> None:
    def saved(traced: bool) -> bytes:
        torch.manual_seed(3)
        model = nn.Linear(3, 3)
        with devtrace.record() if traced else nullcontext():
            model(torch.rand(2, 3)).sum().backward()
        buffer = io.BytesIO()
        torch.save({"model": model.state_dict(), "whole": list(model.parameters())}, buffer)
        return buffer.getvalue()

    assert saved(True) == saved(False)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_whatever_ends_the_block_nothing_is_left(error: type[BaseException]) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise error("stop")

    with pytest.raises(error, match="stop"), devtrace.record() as recording:
        Net()(torch.ones(2))
    assert broken_rule(recording.trace) is None


def test_a_mode_of_the_users_that_stays_on_the_stack_stays() -> None:
    mode = Ops()
    with devtrace.record() as recording:
        mode.__enter__()  # type: ignore[no-untyped-call]
        torch.ones(2).add_(1)
    assert torch._C._get_dispatch_stack_at(0) is mode
    mode.__exit__(None, None, None)
    assert [op.name for op in recording.trace.ops] == ["aten.ones", "aten.add_.Tensor"]


class Named(torch.Tensor):
    """A subclass with a constructor of its own."""

    note: str

    @staticmethod
    def __new__(cls, *given: Any, note: str = "") -> Named:
        made: Named = super().__new__(cls, *given)
        made.note = note
        return made


class Bare(torch.Tensor):
    """A subclass without one."""


def _made_of_subclasses() -> list[Any]:
    with_gradient = torch.ones(2, requires_grad=True)
    given: tuple[Any, ...] = ((), ([1.0, 2.0],), (torch.ones(2),), (with_gradient,))
    return [
        *(kind(*each) for kind in (Bare, Named) for each in given),
        Bare(2, 3).zero_(),
        Named(torch.Size([2])).zero_(),
        Named([1.0], note="a"),
        torch.Tensor.__new__(Bare, [3.0]),
        torch.Tensor([4.0]),
        nn.Parameter(torch.ones(1)),
    ]


def _facts(made: list[Any]) -> list[Any]:
    return [
        (type(x), tuple(x.shape), x.is_leaf, x.requires_grad, x._is_view(), x._version, getattr(x, "note", None))
        for x in made
    ]


def _values(made: list[Any]) -> list[Any]:
    return [x.detach().as_subclass(torch.Tensor).tolist() for x in made]


@pytest.mark.parametrize("devices", [None, "cuda:2"])
def test_a_subclass_of_tensor_is_called_as_without_a_recording(devices: str | None) -> None:
    before = torch.Tensor.__new__
    plain = _made_of_subclasses()
    with devtrace.record(simulate=devices) as recording:
        recorded = _made_of_subclasses()
        (recorded[2] * 2).sum()
    assert _facts(recorded) == _facts(plain)
    assert _values(recorded) == _values(plain)
    assert recording.report.findings == ()
    assert torch.Tensor.__new__ == before
    assert "__new__" not in vars(torch.Tensor)
    assert _facts(_made_of_subclasses()) == _facts(plain)


@pytest.mark.parametrize("devices", [None, "cuda:2"])
def test_torch_compile_finds_the_constructor_of_tensors_unchanged(devices: str | None) -> None:
    own = torch.Tensor.__new__
    seen: list[object] = []
    with devtrace.record(simulate=devices):
        exec("seen.append(torch.Tensor.__new__)", {"__name__": "torch._dynamo.variables", "seen": seen, "torch": torch})
        assert torch.Tensor.__new__ is not own
    assert seen == [own]


def tangent_of_eigenvalues(x: torch.Tensor) -> torch.Tensor:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        tangent: torch.Tensor | None = forward_ad.unpack_dual(torch.linalg.eigvalsh(dual)).tangent
        assert tangent is not None
        return tangent


def gradient_of_singular_values(x: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    torch.linalg.svdvals(leaf).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize("devices", [None, "cuda:1"])
@pytest.mark.parametrize(
    "computed",
    [
        lambda x: torch.linalg.eigvalsh(x),
        lambda x: torch.linalg.svdvals(A=x),
        lambda x: torch.linalg.cond(x),
        lambda x: torch.linalg.cond(x, -2),
        lambda x: torch.linalg.norm(x, "nuc"),
        lambda x: torch.linalg.matrix_norm(x, ord=2),
        lambda x: x.norm("nuc"),
        torch.func.grad(lambda x: torch.linalg.eigvalsh(x).pow(2).sum()),
        lambda x: torch.func.jvp(lambda y: torch.linalg.svdvals(y), (x,), (torch.ones_like(x),))[1],
        lambda x: torch.func.vmap(lambda y: torch.linalg.eigvalsh(y))(x.expand(2, 7, 7)),
        tangent_of_eigenvalues,
        gradient_of_singular_values,
    ],
)
def test_eigenvalues_and_singular_values_are_those_of_no_mode(
    computed: Callable[[torch.Tensor], torch.Tensor], devices: str | None
) -> None:
    factor = torch.randn(7, 7, generator=torch.Generator().manual_seed(0))
    matrix = factor @ factor.T
    plain = computed(matrix)
    with devtrace.record(simulate=devices):
        recorded = computed(matrix.to("cuda:0" if devices else "cpu")).cpu()
    assert torch.equal(recorded, plain)


def test_what_computes_values_alone_is_recorded_at_its_line() -> None:
    with devtrace.record() as recording:
        torch.linalg.eigvalsh(torch.eye(3))
    (row,) = (op for op in recording.trace.ops if op.name == "aten._linalg_eigh")
    assert row.site is not None
    assert row.site.text == "torch.linalg.eigvalsh(torch.eye(3))"
