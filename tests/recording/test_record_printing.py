"""The text of a tensor is a wait for its device, with its line, and reads as it does without a recording."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

import devtrace
from modes import Functions

TEXTS: dict[str, Callable[[Any], object]] = {
    "print": lambda x: print(x, file=io.StringIO()),
    "str": str,
    "repr": repr,
    "a formatted text": lambda x: f"{x}",
    "a list's text": lambda x: str([x]),
    "percent": lambda x: f"{x!s}",
}


def waits(recording: devtrace.record) -> list[tuple[str, str]]:
    return [(op.name, str(op.device)) for op in recording.trace.ops if op.kind == "sync"]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_each_way_to_write_a_tensor_waits_once(name: str, shape: tuple[int, ...]) -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        TEXTS[name](torch.ones(shape, device="cuda:1"))
    assert waits(recording) == [("Tensor.__repr__", "cuda:1")]


def test_the_wait_is_at_the_line_that_prints() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        x = torch.ones(3, device="cuda:0")
        str(x)
    (row,) = [row for row in recording.report.ledger if row.syncs]
    assert (row.site.text, row.syncs) == ("str(x)", 1)
    assert [tuple(tensor.shape) for tensor in recording.trace.ops[-1].inputs] == [(3,)]


def test_a_number_is_printed_as_a_tensor_and_formatted_as_a_number() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        x = torch.ones((), device="cuda:0")
        str(x)
        f"{x:.3f}"
    assert [name for name, _ in waits(recording)] == ["Tensor.__repr__", "aten._local_scalar_dense"]


def test_a_text_without_values_of_a_device_does_not_wait() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        str(torch.ones(3))
        str(torch.ones(3, device="meta"))
        str(torch.ones(0, device="cuda:0"))
    assert waits(recording) == []


def test_a_wrapper_waits_where_what_it_wraps_is_written() -> None:
    def written(x: torch.Tensor) -> torch.Tensor:
        str(x)
        return x

    with devtrace.record(simulate="cuda:1") as recording:
        torch.func.vmap(written)(torch.ones(1, 3, device="cuda:0"))
    assert waits(recording) == [("Tensor.__repr__", "cuda:0")]


def test_the_text_and_what_modes_of_the_user_see_are_as_without_a_recording() -> None:
    def text() -> tuple[str, list[str]]:
        with Functions() as functions:
            made = str(torch.nn.Parameter(torch.linspace(0, 1, 5, device="cuda:0")))
        return made, functions.seen

    write = torch._tensor_str._str
    with devtrace.simulate("cuda:1"):
        plain = text()
        with devtrace.record():
            recorded = text()
    assert recorded == plain
    assert torch._tensor_str._str is write


def test_a_text_that_cannot_be_made_raises_as_without_a_recording() -> None:
    class Silent(torch.Tensor):
        def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
            raise ValueError("no text")

    with pytest.raises(ValueError, match="no text"), devtrace.record(simulate="cuda:1"):
        str(torch.ones(3, device="cuda:0").as_subclass(Silent))
