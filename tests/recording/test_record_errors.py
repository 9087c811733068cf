"""The failing op is the last row, also where no dispatch mode sees it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel.parallel_apply import parallel_apply

import devtrace
from devtrace.trace.rows import Op
from devtrace.trace.tables import TraceData
from failing import culprit_of


def recorded(program: Callable[[], object], **options: object) -> tuple[TraceData, BaseException | None]:
    error: BaseException | None = None
    try:
        with devtrace.record(**options) as recording:  # type: ignore[arg-type]
            program()
    except BaseException as caught:  # noqa: BLE001
        error = caught
    return recording.trace, error


def refused(program: Callable[[], object]) -> Op:
    trace, error = recorded(program, simulate="cuda:2")
    assert error is not None
    op: Op = trace.ops[-1]
    (failure,) = trace.errors
    assert failure.op == op
    assert (failure.type, failure.message) == (type(error).__name__, str(error))
    assert op.duration == -1
    return op


def numpy() -> None:
    x = torch.ones(3, device="cuda:0")
    x.numpy()


def array() -> None:
    x = torch.ones(3, device="cuda:0")
    np.asarray(x)


def function_of_numpy() -> None:
    x = torch.ones(3, device="cuda:0")
    np.sin(x)


def absent_device() -> None:
    x = torch.ones(3)
    x.cuda(7)


def attention_in_two_dtypes() -> None:
    q, v = torch.rand(1, 2, 4, 8), torch.rand(1, 2, 4, 8, dtype=torch.float64)
    F.scaled_dot_product_attention(q, q, v)


@pytest.mark.parametrize(
    ("program", "name", "inputs", "text"),
    [
        (numpy, "Tensor.numpy", ["cuda:0 float32"], "x.numpy()"),
        (array, "asarray", ["cuda:0 float32"], "np.asarray(x)"),
        (function_of_numpy, "sin", ["cuda:0 float32"], "np.sin(x)"),
        (absent_device, "Tensor.cuda", ["cpu float32"], "x.cuda(7)"),
        (
            attention_in_two_dtypes,
            "scaled_dot_product_attention",
            ["cpu float32", "cpu float64"],
            "F.scaled_dot_product_attention(q, q, v)",
        ),
    ],
)
def test_what_is_refused_before_there_is_an_op_is_one_with_its_tensors_and_its_line(
    program: Callable[[], None], name: str, inputs: list[str], text: str
) -> None:
    op = refused(program)
    assert (op.name, [f"{tensor.device} {tensor.dtype}" for tensor in op.inputs]) == (name, inputs)
    assert all((tensor.producer is not None) for tensor in op.inputs)
    assert op.site is not None
    assert op.site.text == text


def test_numpy_in_a_comprehension_names_the_variable_of_the_comprehension() -> None:
    def program() -> None:
        chunks = [torch.ones(3), torch.ones(3, device="cuda:1")]
        [c.numpy() for c in chunks]

    op = refused(program)
    # CPython 3.12 and newer take the variable away before the error arrives (PEP 709): then nothing is claimed.
    assert [tensor.device for tensor in op.inputs] == (["cuda:1"] if sys.version_info < (3, 12) else [])


def attention() -> None:
    q, k = torch.rand(1, 2, 4, 8, device="cuda:0"), torch.rand(1, 2, 4, 8)
    F.scaled_dot_product_attention(q, k, q)


def lstm() -> None:
    x, net = torch.rand(5, 1, 3), nn.LSTM(3, 4).to("cuda:0")
    net(x)


def lstm_with_a_state() -> None:
    x, net = torch.rand(5, 1, 3, device="cuda:0"), nn.LSTM(3, 4).to("cuda:0")
    h, c = torch.rand(1, 1, 4), torch.rand(1, 1, 4)
    net(x, (h, c))


def gru() -> None:
    x, net = torch.rand(5, 1, 3), nn.GRU(3, 4).to("cuda:0")
    net(x)


def gradient() -> None:
    p, g = nn.Parameter(torch.ones(3)), torch.ones(3, device="cuda:0")
    p.grad = g


def mesh() -> None:
    a, b = torch.rand(2, device="cuda:0"), torch.rand(2)
    torch.meshgrid(a, b, indexing="ij")


@pytest.mark.parametrize(
    ("program", "name", "devices", "words", "culprit"),
    [
        (attention, "scaled_dot_product_attention", {"cuda:0", "cpu"}, "query, key, and value to have the same", "k"),
        (lstm, "lstm", {"cpu", "cuda:0"}, "found input tensor at cpu and parameter tensor at cuda:0", "x"),
        (lstm_with_a_state, "lstm", {"cuda:0", "cpu"}, "found input tensor at cuda:0 and hidden tensor at cpu", "h"),
        (gru, "gru", {"cpu", "cuda:0"}, "found input tensor at cpu and parameter tensor at cuda:0", "x"),
        (mesh, "meshgrid", {"cuda:0", "cpu"}, "meshgrid expects all tensors to have the same device", "b"),
        (gradient, "Tensor.grad", {"cpu", "cuda:0"}, "assign", "p"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_mix_of_devices_that_torch_refuses_above_its_dispatcher(
    program: Callable[[], None], name: str, devices: set[str], words: str, culprit: str
) -> None:
    with pytest.raises(RuntimeError) as error, devtrace.record(simulate="cuda:2") as recording:
        program()
    assert words in str(error.value)
    op: Op = recording.trace.ops[-1]
    assert (op.name, op.duration) == (name, -1)
    assert {str(tensor.device) for tensor in op.inputs} == devices
    (finding,) = [found for found in recording.report.findings if found.severity == "error"]
    assert finding.rule == "device-mismatch"
    assert culprit_of(finding).name == culprit


def test_data_of_a_device_may_replace_host_data() -> None:
    """CUDA's rule: both kinds of dense tensor have the same implementation (`_has_compatible_shallow_copy_type`)."""
    with devtrace.record(simulate="cuda:1"):
        p = nn.Parameter(torch.ones(3))
        p.data = torch.ones(3, device="cuda:0")
        assert p.is_cuda


def test_a_wrong_argument_in_a_module_stays_within_its_call() -> None:
    net = nn.Sequential(nn.LSTM(4, 4))
    trace, error = recorded(lambda: net(torch.rand(2, 3, 5)))
    assert isinstance(error, RuntimeError)
    op = trace.ops[-1]
    assert op.duration == -1
    assert op.module is not None
    assert op.module.path == "net.0"
    assert len(trace.errors) == 1


def no_data(x: torch.Tensor) -> None:
    parameter = nn.Parameter(x)
    parameter.data = "no tensor"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("fail", "kinds", "name"),
    [
        (lambda x: x.cuda(), (AssertionError, RuntimeError), "Tensor.cuda"),
        (no_data, TypeError, "Tensor.data"),
        (lambda x: [0][len(x)], IndexError, ""),
        (lambda x: int("x" * len(x)), ValueError, ""),
    ],
)
def test_an_error_of_torchs_own_is_an_op_and_one_of_plain_python_is_none(
    fail: Callable[[torch.Tensor], object], kinds: Any, name: str
) -> None:
    def program() -> None:
        x = torch.ones(3)
        fail(x)

    trace, error = recorded(program)
    assert isinstance(error, kinds)
    assert trace.ops[-1].name == (name or "aten.ones")
    assert len(trace.errors) == bool(name)


def test_an_error_that_was_caught_stays_with_its_op_and_the_next_one_has_its_own() -> None:
    def program() -> None:
        a, b = torch.ones(2, 3), torch.ones(2, 3)
        with contextlib.suppress(RuntimeError):
            a @ b
        torch.ones(3).view(7)

    trace, error = recorded(program)
    assert [failure.op.name for failure in trace.errors] == ["aten.mm", "aten.view"]
    assert trace.errors[1].op == trace.ops[-1]
    assert str(error) == trace.errors[1].message


def test_an_error_wrapped_in_another_is_reported_once() -> None:
    def program() -> None:
        try:
            torch.ones(3).view(7)
        except RuntimeError as error:
            raise RuntimeError("training failed") from error

    trace, _ = recorded(program)
    assert [failure.op.name for failure in trace.errors] == ["aten.view"]


def test_an_interrupt_in_the_middle_of_an_op_is_recorded_and_passes_through() -> None:
    class Interrupting(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def, override]
            raise KeyboardInterrupt

    def program() -> None:
        x = torch.Tensor._make_wrapper_subclass(Interrupting, (3,))
        x.sin()

    trace, error = recorded(program)
    assert isinstance(error, KeyboardInterrupt)
    assert trace.ops[-1].name == "aten.sin"
    assert trace.errors[-1].type == "KeyboardInterrupt"
    assert torch._C._len_torch_dispatch_stack() == 0


def test_a_failing_exception_text_is_no_fault_of_ours() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    def program() -> None:
        raise MuteError

    trace, error = recorded(program)
    assert type(error) is MuteError
    assert len(trace.ops) == 0


def test_what_a_worker_thread_hands_on_as_text_has_no_frame_of_ours() -> None:
    def program() -> None:
        modules = [nn.Linear(3, 3, device=f"cuda:{device}") for device in (0, 1)]
        parallel_apply(modules, [torch.ones(2, 3, device="cuda:0"), torch.ones(2, 5, device="cuda:1")], devices=[0, 1])

    _, error = recorded(program, simulate="cuda:2")
    assert "Caught RuntimeError in replica 1 on device 1.\nOriginal Traceback" in str(error)
    assert "src/devtrace/" not in str(error)
