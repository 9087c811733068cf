"""Above max_ops whole repetitions are folded away; what the ledger counts stays exact."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import devtrace
from devtrace.api.recording import record
from devtrace.diagnosis.findings import LedgerRow
from devtrace.recording.columns.chunk import WIDTH
from devtrace.recording.folding.repetition import Repetition, fold, longest_run
from devtrace.recording.hot import dispatch
from devtrace.trace.checks import broken_rule


def recorded(program: Callable[[], object], max_ops: int) -> record:
    with devtrace.record(simulate="cuda:2", max_ops=max_ops) as recording:
        program()
    return recording


def counts(rows: tuple[LedgerRow, ...]) -> dict[tuple[str, str], object]:
    return {
        (str(row.site), row.site.text): (
            dict(row.ops), row.h2d, row.d2h, row.d2d, row.syncs, row.cpu_compute, row.bytes
        )
        for row in rows
    }  # fmt: skip


def training() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to("cuda:0")
    optimizer = torch.optim.Adam(model.parameters())
    seen = 0.0
    for step in range(60):
        batch = torch.rand(8 if step % 7 else 5, 4).to("cuda:0")
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        seen += loss.item()
        if step % 20 == 0:
            next(model.parameters()).norm().cpu()


def alternating() -> None:
    devices = ["cpu", "cuda:0", "cuda:1"]
    tensors = [torch.rand(3, device=device) for device in devices]
    for step in range(800):
        tensors[step % 3].mul_(2)
        tensors[1].copy_(tensors[step % 2 * 2])


def irregular() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.ones(3)
    y = torch.ones(3, device="cuda:0")
    for pick in torch.randint(0, 4, (1500,), generator=generator).tolist():
        if pick == 0:
            x = x * 1.5
        elif pick == 1:
            y = y + 1
        elif pick == 2:
            y.sum().item()
        else:
            y = x.to("cuda:0")


@pytest.mark.parametrize("program", [training, alternating, irregular])
@pytest.mark.parametrize("max_ops", [500, 1000])
def test_the_ledger_stays_exact(program: Callable[[], object], max_ops: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FULL", 128 * WIDTH)  # so that folding happens on the way
    whole, folded = recorded(program, 10**6), recorded(program, max_ops)
    assert len(whole.trace.ops) > max_ops
    assert len(folded.trace.ops) <= (2 * max_ops if program is irregular else max_ops)
    assert len(folded.trace.ops) + folded.trace.truncated == len(whole.trace.ops)
    assert broken_rule(folded.trace) is None
    assert counts(folded.report.ledger) == counts(whole.report.ledger)


def test_what_is_kept_reads_as_a_shorter_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FULL", 64 * WIDTH)
    folded = recorded(training, 400).trace
    whole = recorded(training, 10**6).trace
    assert [op.name for op in folded.ops[:150]] == [op.name for op in whole.ops[:150]]
    assert [op.name for op in folded.ops[-100:]] == [op.name for op in whole.ops[-100:]]
    assert {row.path for row in folded.modules} == {row.path for row in whole.modules}
    roots = [call for call in folded.calls if call.parent is None]
    assert len(roots) < 20
    assert all(call.begin < call.end for call in roots)


def test_a_tensor_of_a_folded_step_keeps_its_birth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FULL", 64 * WIDTH)

    def program() -> None:
        kept = []
        for _ in range(1000):
            kept.append(torch.ones(2) * 3)
        for tensor in kept:
            tensor.sub_(1)

    trace = recorded(program, 100).trace
    middle = [op for op in trace.ops if op.name == "aten.sub_.Tensor"]
    assert middle
    for op in middle:
        (tensor,) = op.inputs
        assert tensor.site is not None
        assert tensor.site.text == "torch.ones(2) * 3"


def test_calls_in_threads_fold_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FULL", 64 * WIDTH)

    def work() -> None:
        model = nn.Linear(2, 2)
        for _ in range(300):
            model(torch.ones(1, 2))

    def program() -> None:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    whole, folded = recorded(program, 10**6), recorded(program, 300)
    assert broken_rule(folded.trace) is None
    assert len(folded.trace.ops) <= 300
    assert counts(folded.report.ledger) == counts(whole.report.ledger)


def waiting() -> None:
    total = torch.zeros(2, device="cuda:0")
    for step in range(80):
        total += 1
        torch.cuda.synchronize(step % 2)


def test_waits_that_a_program_asks_for_are_counted_where_they_are_folded() -> None:
    whole, folded = recorded(waiting, 100_000), recorded(waiting, 20)
    assert folded.trace.truncated
    assert broken_rule(folded.trace) is None
    assert {str(op.device) for op in folded.trace.ops if op.name == "cuda.synchronize"} <= {"cuda:0", "cuda:1"}
    assert [row.syncs for row in folded.report.ledger] == [row.syncs for row in whole.report.ledger] == [0, 0, 80]


Array = npt.NDArray[np.int64]


def kept(into: Array) -> Array:
    return np.flatnonzero(into == np.arange(len(into)))


def test_the_middle_of_a_loop_goes_and_both_ends_stay() -> None:
    keys = np.array([9, 8, *[1, 2, 3] * 100, 7])
    into = fold(keys, 30, 60)
    left = keys[kept(into)].tolist()
    assert left[:5] == [9, 8, 1, 2, 3]
    assert left[-4:] == [1, 2, 3, 7]
    assert len(left) == 2 + 3 * 9 + 1


def test_the_first_and_the_last_repetitions_stay() -> None:
    into = fold(np.array([1, 2, 3] * 100), 9, 9)
    assert kept(into).tolist() == [0, 1, 2, 294, 295, 296, 297, 298, 299]


def test_a_loop_in_a_loop_is_folded_as_the_outer_loop_if_that_is_needed() -> None:
    step = [1, *[2, 3] * 6, 4]
    left = np.array(step * 200)[kept(fold(np.array(step * 200), 100, 100))].tolist()
    assert left == step * 7


def test_what_does_not_repeat_in_order_is_folded_one_by_one() -> None:
    keys = np.random.default_rng(0).integers(0, 40, 5000)
    into = fold(keys, 1000, 2000)
    assert len(kept(into)) <= 1000
    assert (keys[into] == keys).all()


def test_what_never_repeats_is_kept() -> None:
    assert len(kept(fold(np.arange(1000), 10, 10))) == 1000


def test_a_run_that_ended_before_is_found() -> None:
    run = longest_run(np.array([1, 2] * 50 + list(range(10, 20))), 50)
    assert run is not None
    assert run.period == 2


def test_a_run_counts_whole_repetitions() -> None:
    assert Repetition(3, 14, 5).repetitions == 2


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_ops_are_no_fault(count: int) -> None:
    assert len(fold(np.zeros(count, dtype=np.int64), 1, 1)) == count


@settings(deadline=None, max_examples=150)
@given(
    loops=st.lists(
        st.tuples(st.lists(st.integers(0, 6), min_size=1, max_size=9), st.integers(1, 40)), min_size=1, max_size=6
    ),
    most=st.integers(1, 60),
)
def test_ops_represent_only_ops_of_their_key_and_are_all_counted(loops: list[tuple[list[int], int]], most: int) -> None:
    keys = np.array([key for body, times in loops for key in body * times])
    into = fold(keys, most, 2 * most)
    assert (keys[into] == keys).all()
    assert (into[into] == into).all()
    left = kept(into)
    assert left[0] == 0
    assert len(left) <= max(2 * most, len(set(keys.tolist())) + most)
