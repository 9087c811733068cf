"""The beginning and the end of a simulation: nothing is left behind, and its tensors say that it has ended."""

from __future__ import annotations

import gc
import io
import re
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._dynamo.eval_frame import TorchPatcher
from torch.utils._device import DeviceContext

import devtrace
from devtrace.runtime.patches import MISSING, Patches
from devtrace.runtime.quiet import Quiet, device_of
from devtrace.words.errors import SimulateError
from modes import Ops

TorchPatcher.patch()  # the first compilation of a process wraps functions of torch.jit

OWNERS: tuple[Any, ...] = (
    torch,
    torch._C,
    torch._C._nn,
    torch._VF,
    torch.Tensor,
    torch.UntypedStorage,
    torch.cuda,
    torch.autograd,
    torch.autograd.Function,
    torch.cuda.streams,
    torch.cuda.nccl,
    torch.distributed,
    torch.distributed.distributed_c10d,
    torch.distributed.ProcessGroup,
    torch._C._distributed_c10d,
    torch.functional,
    torch.linalg,
    torch.nn.functional,
    torch.random,
    torch.version,
    torch.backends.cudnn,
    DeviceContext,
    threading.Thread,
)

# What this build of torch says of itself without a simulation: one with CUDA names its accelerator, driver or not.
BUILT_FOR = torch.accelerator.current_accelerator()
NO_CUDA = "Torch not compiled with CUDA enabled" if torch.version.cuda is None else "Found no NVIDIA driver"


def everything() -> list[dict[str, int]]:
    return [{name: id(value) for name, value in vars(owner).items()} for owner in OWNERS]


def use() -> None:
    """Make it do what installs itself late: autocast's kernels, streams, generators."""
    x = torch.rand(2, 2, device="cuda")
    with torch.autocast("cuda"):
        x.mm(x)
    torch.cuda.Stream()
    torch.Generator("cuda")
    nn.DataParallel(nn.Linear(2, 2).cuda())(x)


def assert_gone() -> None:
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert torch.accelerator.current_accelerator() == BUILT_FOR
    assert torch._C._len_torch_dispatch_stack() == 0
    assert not torch._C._only_lift_cpu_tensors()
    with pytest.raises((AssertionError, RuntimeError), match=NO_CUDA):
        torch.zeros(1, device="cuda")


@pytest.mark.parametrize("spec", ["cuda:0", "mps", "tpu:9", "cuda:99", "cuda:-1", "", None, True, 0, 17, 2.0])
def test_what_is_no_number_of_devices_gets_one_sentence_about_what_is(spec: object) -> None:
    with pytest.raises(SimulateError, match=re.escape('"cuda:1" to "cuda:16"')) as caught:
        devtrace.simulate(spec)  # type: ignore[arg-type]
    assert caught.value.slug == "simulate-devices"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["cuda:3", "3", 3])
def test_a_number_of_devices_may_be_a_plain_number(spec: str | int) -> None:
    with devtrace.simulate(spec):
        assert torch.cuda.device_count() == 3


def test_two_simulations_do_not_nest(two: None) -> None:
    with pytest.raises(SimulateError, match="simulate-nested"), devtrace.simulate("cuda:1"):
        pass
    assert torch.cuda.device_count() == 2


def test_a_simulation_shows_what_it_does_or_how_it_begins() -> None:
    simulation = devtrace.simulate("cuda:2")
    waiting = (
        "<simulate: Nothing is simulated yet. "
        'Write `with devtrace.simulate("cuda:2"):` above a block, or call `.start()`.>'
    )
    assert repr(simulation) == waiting
    with simulation:
        assert repr(simulation) == (
            "<simulate: cuda:0 and cuda:1 are simulated until the block ends, or until `.stop()`.>"
        )
    assert repr(simulation) == waiting


STOPS = (None, ValueError, KeyboardInterrupt, SystemExit)


@pytest.mark.parametrize("error", STOPS)
def test_every_patched_name_is_the_original_object_again(error: type[BaseException] | None) -> None:
    with devtrace.simulate("cuda:1"):
        use()  # what torch itself sets on first use stays set
    before = everything()
    with pytest.raises(error) if error else nullcontext(), devtrace.simulate("cuda:2"):
        assert everything() != before
        use()
        if error is not None:
            raise error
    assert everything() == before
    assert_gone()


def test_a_start_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    from devtrace.simulation import mode

    before = everything()

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mode, "install", fail)
    with pytest.raises(KeyboardInterrupt):
        devtrace.simulate("cuda:2").start()
    monkeypatch.undo()
    assert everything() == before
    assert_gone()


Action = Callable[[], object]


def train() -> None:
    model = nn.Linear(2, 2).to("cuda:1")
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.rand(2, 2, device="cuda:1")).sum().backward()
    optimizer.step()


def in_a_thread() -> None:
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()


ACTIONS: list[Action] = [
    use,
    train,
    lambda: torch.cuda.set_device(1),
    lambda: torch.cuda.manual_seed_all(3),
    lambda: torch.set_default_device(None),
    lambda: torch.cuda.stream(torch.cuda.Stream()).__enter__(),  # and never left
    lambda: torch.save(torch.ones(2, device="cuda"), io.BytesIO()),
    lambda: torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2, device="cuda")),
    in_a_thread,
]


@settings(deadline=None, max_examples=12)
@given(
    chosen=st.lists(st.sampled_from(ACTIONS), max_size=4),
    stop=st.sampled_from(STOPS),
    within=st.booleans(),
    recorded=st.booleans(),
)
def test_whatever_a_program_does_and_however_it_ends_every_patched_name_is_as_before(
    chosen: list[Action], stop: type[BaseException] | None, within: bool, recorded: bool
) -> None:
    patched: list[tuple[Any, Any, object]] = []
    undo = Patches.undo

    def noted(self: Patches) -> None:
        patched[:0] = ((owner, name, before) for owner, name, before, _ in self.replaced)  # undone last, patched first
        undo(self)

    def end(*_: Any) -> None:
        if stop is not None:
            raise stop

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Patches, "undo", noted)
        devices = devtrace.record(simulate="cuda:2") if recorded else devtrace.simulate("cuda:2")
        with pytest.raises(stop) if stop else nullcontext(), devices:
            for action in chosen:
                with suppress(RuntimeError):  # after set_device(1) DataParallel's replicas meet
                    action()
            if stop is not None:
                with Ops(end) if within else nullcontext():
                    torch.ones(2, device="cuda")
                raise stop
    first: dict[tuple[int, Any], object] = {}
    for owner, name, old in patched:
        first.setdefault((id(owner), name), old)
        now = owner.get(name, MISSING) if isinstance(owner, dict) else vars(owner).get(name, MISSING)
        assert now is first[id(owner), name], name
    assert len(first) > 100
    assert_gone()


def test_start_and_stop_work_without_a_block_and_stop_twice_does_no_harm() -> None:
    simulation = devtrace.simulate("cuda:2").start()
    assert torch.zeros(1, device="cuda:1").is_cuda
    simulation.stop()
    simulation.stop()
    assert_gone()


def test_a_mode_of_the_program_sees_the_devices_and_survives_the_end() -> None:
    mode = Ops(after=lambda func, out: (str(func), str(out.device)))
    with mode:  # entered first, and still above ours
        simulation = devtrace.simulate("cuda:1").start()
        x = torch.ones(2).to("cuda") * 2
        x.to("cuda")
        simulation.stop()
        torch.ones(1)
    assert mode.seen == [
        ("aten.ones.default", "cpu"),
        ("aten._to_copy.default", "cuda:0"),
        ("aten.mul.Tensor", "cuda:0"),
        ("aten.ones.default", "cpu"),
    ]


def test_a_thread_started_inside_has_the_devices() -> None:
    seen: list[str] = []

    def work() -> None:
        seen.append(str((torch.ones(3, device="cuda:1") + 1).device))
        try:
            torch.ones(3) + torch.ones(3, device="cuda")
        except RuntimeError as error:
            seen.append(str(error))

    with devtrace.simulate("cuda:2"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen[0] == "cuda:1"
    assert "cuda:0 and cpu!" in seen[1]


def test_a_thread_that_outlives_the_simulation_goes_on_on_the_cpu() -> None:
    ended, results = threading.Event(), []

    def work() -> None:
        ended.wait()
        results.append((torch.ones(2) * 2).sum().item())

    with devtrace.simulate("cuda:2"):
        thread = threading.Thread(target=work)
        thread.start()
    ended.set()
    thread.join()
    assert results == [4]


def after() -> tuple[torch.Tensor, nn.Linear, torch.Tensor]:
    """A tensor, a module and a loss that outlive their simulation."""
    with devtrace.simulate("cuda:2"):
        x, model = torch.ones(1, 3, device="cuda:1"), nn.Linear(3, 2).cuda()
        loss = model(x.to("cuda:0")).sum()
        loss.backward()
    return x, model, loss


@pytest.mark.parametrize(
    "use_it",
    [
        lambda x, model, loss: x + 1,
        lambda x, model, loss: x[0],
        lambda x, model, loss: x.cpu(),
        lambda x, model, loss: x.numpy(),
        lambda x, model, loss: loss.item(),
        lambda x, model, loss: loss.backward(),
        lambda x, model, loss: model(torch.ones(1, 3)),
        lambda x, model, loss: model.to("cpu"),
        lambda x, model, loss: model.weight.grad.sum(),
        lambda x, model, loss: torch.save(model.state_dict(), io.BytesIO()),
    ],
)
def test_a_tensor_used_after_its_simulation_raises_a_sentence_about_it(use_it: Callable[..., object]) -> None:
    with pytest.raises(SimulateError, match="simulate-ended: got a tensor on the simulated cuda:"):
        use_it(*after())


def test_a_tensor_can_be_looked_at_after_its_simulation() -> None:
    x, model, _ = after()
    assert repr(x) == "<tensor of shape (1, 3) on the simulated cuda:1, whose simulation has ended>"
    assert (x.shape, x.dtype, str(x.device)) == ((1, 3), torch.float32, "cuda:1")
    assert isinstance(model.weight, nn.Parameter)


def test_what_devtrace_reads_of_a_tensor_after_its_simulation_is_what_the_tensor_answers() -> None:
    x, model, _ = after()
    for tensor in (x, model.weight, torch.ones(1)):
        with Quiet():
            assert device_of(tensor) == tensor.device


def test_a_tensor_is_on_its_device_again_in_the_next_simulation() -> None:
    x, model, _ = after()
    with devtrace.simulate("cuda:1"):
        assert model(torch.ones(1, 3, device="cuda")).device == torch.device("cuda:0")
        assert type(model.weight) is nn.Parameter
        with pytest.raises(SimulateError, match="simulate-ended"):
            x + 1  # there is no cuda:1
    with devtrace.simulate("cuda:2"):
        assert type(x) is torch.Tensor
        assert (x + 1).tolist() == [[2, 2, 2]]


class Wary(torch.Tensor):
    """A class of a program's own that refuses every call while `WARY` is set."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if WARY:
            raise AssertionError(f"{func} was called")
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


WARY: list[bool] = []


def test_a_tensor_class_of_the_program_sees_neither_the_end_nor_the_next_beginning() -> None:
    with devtrace.simulate("cuda:1"):
        tensors = [torch.ones(2).as_subclass(Wary), torch.ones(2, device="cuda").as_subclass(Wary)]
        WARY.append(True)
    WARY.clear()
    assert [tensor.device.type for tensor in tensors] == ["cpu", "cuda"]
    simulation = devtrace.simulate("cuda:1")
    WARY.append(True)
    with simulation:
        WARY.clear()
        assert tensors[1].sum().item() == 2


def test_memory_counts_from_the_start_of_its_simulation() -> None:
    with devtrace.simulate("cuda:2"):
        kept = torch.zeros(3, device="cuda:1")
    with devtrace.simulate("cuda:2"):
        assert torch.cuda.memory_allocated(1) == torch.cuda.max_memory_allocated(1) == 0
        made = kept + 1
        assert torch.cuda.memory_allocated(1) == 512
        del kept
        assert torch.cuda.memory_allocated(1) == 512
        del made
        assert torch.cuda.memory_allocated(1) == 0
        assert torch.cuda.max_memory_allocated(1) == 512


def test_real_devices_are_not_hidden_unless_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(SimulateError, match="simulate-real-cuda"):
        devtrace.simulate("cuda:1").start()
    with devtrace.simulate("cuda:2", force=True):
        assert torch.cuda.device_count() == 2


def test_no_python_runs_when_a_storage_is_freed_where_an_interrupt_would_be_lost(one: None) -> None:
    before = torch.cuda.memory_allocated()
    x = torch.ones(1000, device="cuda")
    assert torch.cuda.memory_allocated() == before + 4096
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_qualname) if event == "call" else None)
    del x
    sys.setprofile(None)
    assert called == []
    assert torch.cuda.memory_allocated() == before


def test_a_backend_outlives_its_group_until_the_simulation_ends() -> None:
    """One that ends waits for threads that wait for Python."""
    with devtrace.simulate("cuda:1"):
        store = torch._C._distributed_c10d.HashStore()
        dist.init_process_group("cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1)
        group = dist.distributed_c10d._get_default_group()
        backends = [weakref.ref(group._get_backend(torch.device(kind))) for kind in ("cpu", "cuda")]
        dist.destroy_process_group()
        del group
        gc.collect()
        assert [kept() is not None for kept in backends] == [True, True]
    gc.collect()
    assert [kept() for kept in backends] == [None, None]
