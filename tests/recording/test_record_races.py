"""What comes between two steps of the recorder (an interrupt, another thread) loses no op and doubles no row."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest
import torch

import devtrace
from devtrace.recording.columns import stamps, tensor_rows
from devtrace.recording.columns.chunk import WIDTH, Chunk
from devtrace.recording.columns.recorded_ops import MOST_NOTES
from devtrace.recording.columns.tensor_rows import Rows
from devtrace.recording.folding import fold as folding
from devtrace.recording.hot import dispatch
from devtrace.recording.hot.recorder import Recorder
from devtrace.trace.checks import broken_rule

OPS = 200


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let Ctrl+C come also where a shell has started the tests in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, at: int) -> list[int]:
    """Let Ctrl+C come while a function runs for the `at`th time; return a list that grows with each time."""
    own: Callable[..., Any] = getattr(owner, name)
    runs: list[int] = []

    def function(*args: Any) -> Any:
        runs.append(len(runs))
        if len(runs) == at:
            signal.raise_signal(signal.SIGINT)
        return own(*args)

    monkeypatch.setattr(owner, name, function)
    return runs


def interrupted_and_gone_on(max_ops: int) -> tuple[devtrace.record, int]:
    """Record ops of which one is interrupted; return how many came back, or were interrupted after they had run."""
    x, ran = torch.zeros(3), 0
    with devtrace.record(max_ops=max_ops) as recording:
        for _ in range(OPS):
            try:
                x.add_(1)
            except KeyboardInterrupt:
                ran += 1
    assert x[0] == OPS
    return recording, ran


@pytest.mark.parametrize("max_ops", [10_000, 32])
@pytest.mark.parametrize("interrupted_in", [(Chunk, "of"), (folding, "_fold_rows"), (folding, "_fold_calls")])
def test_an_interrupt_while_ops_are_packed_or_folded_comes_after_it(
    interrupted_in: tuple[Any, str], max_ops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "FULL", 16 * WIDTH)
    runs = interrupted(monkeypatch, *interrupted_in, at=2)
    recording, interrupts = interrupted_and_gone_on(max_ops)
    assert interrupts == (len(runs) >= 2)
    assert broken_rule(recording.trace) is None
    assert len(recording.trace.ops) + recording.trace.truncated == OPS


def test_an_interrupt_reaches_the_handler_that_the_program_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FULL", 16 * WIDTH)
    interrupted(monkeypatch, Chunk, "of", at=1)
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGINT, handle)
    try:
        recording, _ = interrupted_and_gone_on(10_000)
        assert signal.getsignal(signal.SIGINT) is handle
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
    assert len(recording.trace.ops) == OPS


def interrupted_at_event(event: int, program: Callable[[], object]) -> tuple[devtrace.record, int]:
    """Record a program that Ctrl+C meets as one function of the recorder begins or returns; count such moments."""
    events = [0]

    def follow(frame: FrameType, kind: str, _: object) -> Any:
        if not frame.f_globals.get("__name__", "").startswith("devtrace.recording."):
            return None
        if kind in ("call", "return"):
            events[0] += 1
            if events[0] == event:
                signal.raise_signal(signal.SIGINT)
        return follow

    with devtrace.record() as recording:
        sys.settrace(follow)
        try:
            program()
        finally:
            sys.settrace(None)
    return recording, events[0]


def test_a_copy_that_an_interrupt_keeps_from_being_recorded_is_no_copy_of_the_next_op() -> None:
    x = torch.ones(3)

    def program() -> None:
        with suppress(KeyboardInterrupt):
            x.to("cuda")
        with suppress(KeyboardInterrupt):
            x.add(1)

    with devtrace.simulate("cuda:1"):
        _, events = interrupted_at_event(0, program)
        assert events > 10
        for event in range(1, events + 1):
            trace = interrupted_at_event(event, program)[0].trace
            assert broken_rule(trace) is None
            ops = trace.copies.ints("op").tolist()
            assert {trace.ops[op].name if op >= 0 else "none" for op in ops} <= {"aten._to_copy"}, event


def as_if_between(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Callable[[], object]) -> None:
    """Let another thread do something between the first look at a tensor and what follows it."""
    own, waiting = getattr(owner, name), [other]

    def look(tensor: Any) -> Any:
        found = own(tensor)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(owner, name, look)


@pytest.mark.parametrize("is_input", [True, False])
def test_a_tensor_that_two_threads_use_first_has_one_row(is_input: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, tensor, of_other = Rows(), torch.ones(3), list[int]()

    def row() -> int:
        return rows.row_for_input(tensor) if is_input else rows.row_for_output(tensor, 7, -1)

    as_if_between(monkeypatch, stamps, "get", lambda: of_other.append(row()))
    assert [row()] == of_other
    assert len(rows.extra_rows_table()) == 1


def test_a_view_that_two_threads_use_first_has_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, whole, of_other = Rows(), torch.ones(3, 2), list[int]()
    rows.row_for_input(whole)
    as_if_between(monkeypatch, tensor_rows, "key_of", lambda: of_other.append(rows.row_for_input(whole[1])))
    assert [rows.row_for_input(whole[1])] == of_other


def test_a_layout_that_two_threads_need_first_is_one_layout() -> None:
    rows = Rows()

    class Between:
        """Acts for another thread that has the lock just before."""

        def __enter__(self) -> None:
            rows.lock = own
            rows.layout_of((3,), torch.float32, torch.device("cpu"))

        def __exit__(self, *_: object) -> None:
            pass

    own, rows.lock = rows.lock, Between()  # type: ignore[assignment]
    rows.layout_of((3,), torch.float32, torch.device("cpu"))
    assert len(rows.layouts) == 1


def test_faults_that_differ_each_time_are_a_few_notes_and_a_number() -> None:
    recorder = Recorder(100)
    for number in range(1000):
        recorder.fault(ValueError(f"fault {number}"))
        recorder.fault(ValueError(f"fault {number}"))
    *first, last = recorder.noted()
    assert [json.loads(note.partition("\t")[2])["fault"] for note in first] == [
        f"ValueError: fault {number}" for number in range(MOST_NOTES)
    ]
    assert last == f'note.more\t{{"count": {2 * (1000 - MOST_NOTES)}}}'
