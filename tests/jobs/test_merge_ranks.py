"""The ranks of one job: merged without loss, and told apart."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import devtrace
from devtrace.api.results import Trace, diagnose
from devtrace.diagnosis.store import report_of
from devtrace.jobs.merge import in_own_pages, merge, with_rank
from devtrace.runtime.rank import ranked_path
from devtrace.trace import format
from devtrace.trace.checks import broken_rule
from devtrace.trace.rows import Call
from devtrace.trace.tables import Ints, TraceData
from devtrace.words.errors import UsageError
from samples import Sample, facts_of, training
from traces import empty_trace, head_trace, odd_trace


def ops_of(trace: TraceData, rank: int) -> list[list[object]]:
    """Return the fields of a rank's ops, their times aside."""
    return [_timeless(facts_of(op)) for op in trace.ops if op.thread.rank == rank]


def _timeless(facts: list[object]) -> list[object]:
    return [facts[0], *facts[2:]]


def ops_in(call: Call, trace: TraceData) -> list[str]:
    return [op.name for op in trace.ops[call.begin : call.end] if op.thread == call.thread]


def unranked(trace: TraceData) -> TraceData:
    return with_rank(trace, -1)


def later(trace: TraceData, seconds: float) -> TraceData:
    return replace(trace, recorded=f"2026-11-21T12:00:{seconds:09.6f}+00:00")


@pytest.mark.parametrize("traces", [[training(), training(3)], [unranked(head_trace()), empty_trace(), training(2)]])
def test_each_rank_keeps_its_ops_in_their_order_with_all_their_details(traces: list[TraceData]) -> None:
    merged = merge(traces)
    assert broken_rule(merged) is None
    for rank, trace in enumerate(traces):
        assert ops_of(merged, rank) == [_timeless(facts_of(op)) for op in trace.ops]
    assert len(merged.copies) == sum(len(trace.copies) for trace in traces)
    assert [error.op.duration for error in merged.errors] == [-1 for trace in traces for _ in trace.errors]


def test_each_rank_keeps_the_memory_of_its_device_by_the_same_ops(tmp_path: Path) -> None:
    traces = []
    for rank in range(2):
        with devtrace.record(simulate="cuda:2") as recording:
            x = torch.ones(1 << 20, device=f"cuda:{rank}")
            y = x * 2
            del x
            z = y.sum() + rank
        del y, z
        traces.append(with_rank(recording.trace, rank))
    merged = merge(traces)
    assert [curve.device for curve in merged.memory] == ["cuda:0", "cuda:1"]
    for rank, (one, curve) in enumerate(zip(traces, merged.memory, strict=True)):
        own = one.memory[0]
        assert (curve.limit, curve.is_exact, curve.total.tolist()) == (own.limit, own.is_exact, own.total.tolist())
        ops = [(op, alone) for op, alone in zip(curve.ops.tolist(), own.ops.tolist(), strict=True) if alone >= 0]
        assert {merged.ops[op].thread.rank for op, _ in ops} == {rank}
        assert [merged.ops[op].name for op, _ in ops] == [one.ops[alone].name for _, alone in ops]
    read = devtrace.load(Trace.of(merged).save(tmp_path / "job.devtrace"))
    assert [curve.total.tolist() for curve in read.memory] == [curve.total.tolist() for curve in merged.memory]


def test_each_call_keeps_its_ops() -> None:
    traces = [training(4), later(training(4), 0.0001)]
    merged = merge(traces)
    assert [ops_in(call, merged) for call in merged.calls] == [
        ops_in(call, one) for one in traces for call in one.calls
    ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.0001, 0.0005, 1.0, 30.0]), min_size=2, max_size=4))
def test_however_late_a_rank_began_the_merged_trace_keeps_the_rules(begun: list[float]) -> None:
    merged = merge([later(training(2), seconds) for seconds in begun])
    assert broken_rule(merged) is None
    assert bool(np.all(np.diff(merged.ops.ints("start")) >= 0))


def test_ranks_are_interleaved_by_the_clock() -> None:
    first, second = later(training(2, failing=False), 0), later(training(2, failing=False), 0.0001)
    merged = merge([first, second])
    starts = {rank: [op.start for op in merged.ops if op.thread.rank == rank] for rank in (0, 1)}
    assert starts[1][0] - starts[0][0] == 100_000
    assert [op.thread.rank for op in merged.ops] != sorted(op.thread.rank for op in merged.ops)


def test_equal_lines_and_devices_of_the_ranks_are_one_and_their_counts_are_summed() -> None:
    traces = [training(4), training(4)]
    merged = merge(traces)
    assert list(merged.devices) == list(traces[0].devices)
    assert len(merged.sites) == len(traces[0].sites)
    assert [(str(row.site), row.h2d, row.ops[1]) for row in merged.ledger] == [
        (str(row.site), 2 * row.h2d, 2 * row.ops[1]) for row in traces[0].ledger
    ]


def test_the_finding_names_the_rank_that_failed() -> None:
    merged = merge([training(3, failing=False), training(3), training(3, failing=False)])
    assert merged.findings is None  # two of the three were never diagnosed
    merged = merge([diagnose(training(3, failing=False)).trace, diagnose(training(3)).trace])
    [finding] = diagnose(merged).findings[:1]
    assert finding.message.startswith("On rank 1: model.out_head.weight and .bias are on cpu; the other")
    assert merged.ops[finding.op].duration == -1
    assert merged.ops[finding.op].thread.rank == 1
    assert "On rank 1:" in diagnose(merged).text


def test_the_lines_beside_a_finding_are_those_of_its_rank() -> None:
    ranks = [diagnose(training(3, failing=False)).trace, diagnose(training(3)).trace]
    merged = merge(ranks)
    alone, beside = (report_of(trace).findings[0] for trace in (ranks[1], merged))
    assert [(line.label, str(line.site), line.remark) for line in beside.lines] == [
        (line.label, str(line.site), line.remark) for line in alone.lines
    ]
    assert beside.lines
    assert merged.language == ranks[0].language


def test_notes_and_truncation_are_kept_with_their_rank() -> None:
    note = odd_trace().notes[0]
    merged = merge([unranked(odd_trace()), unranked(empty_trace())])
    assert merged.truncated == odd_trace().truncated
    assert merged.notes[0] == f"rank 0: {note}"
    merged = merge([unranked(odd_trace()), unranked(odd_trace())])
    assert merged.truncated == 2 * odd_trace().truncated
    assert merged.notes[0] == f"On all 2 ranks: {note}"


def test_load_reads_one_file_or_the_ranks_of_a_job(tmp_path: Path) -> None:
    files = [Trace.of(with_rank(training(2), rank)).save(tmp_path / f"a.rank{rank}.devtrace") for rank in (2, 0, 1)]
    assert len(devtrace.load(files[0]).ops) == len(training(2).ops)
    merged = devtrace.load(*files)
    assert merged.title == "In[7] (ranks 0, 1, 2)"
    assert [thread.rank for thread in merged.threads] == [0, 1, 2]


def test_two_traces_of_one_rank_are_not_one_job() -> None:
    with pytest.raises(UsageError) as caught:
        merge([with_rank(training(1), 3), with_rank(training(1), 3)])
    assert str(caught.value) == (
        "rank-twice: got 2 traces, two of them of rank 3; each must be of a different rank of the same job; "
        "leave one out, or compare two runs with devtrace.diff."
    )


def test_load_without_a_file_is_refused() -> None:
    with pytest.raises(UsageError, match="load-nothing"):
        devtrace.load()


def test_a_ranks_file_has_its_number() -> None:
    assert str(ranked_path("out/run.devtrace", 3)) == "out/run.rank3.devtrace"
    assert str(ranked_path("out/run.devtrace", None)) == "out/run.devtrace"


def test_a_finding_that_ranks_share_is_one_and_names_how_many() -> None:
    diagnosed = [diagnose(training(2, failing=rank != 2)).trace for rank in range(8)]
    merged = merge(diagnosed)
    errors = [finding for finding in diagnose(merged).findings if finding.severity == "error"]
    assert [error.message.split(":")[0] for error in errors] == ["On 7 of 8 ranks (not on 2)"]
    assert len(errors[0].ops) == 7


def test_a_finding_of_all_ranks_is_one() -> None:
    healthy = [diagnose(training(3, failing=False)).trace for _ in range(3)]
    assert [finding.message for finding in diagnose(merge(healthy)).findings] == [
        f"On all 3 ranks: {finding.message}" for finding in diagnose(healthy[0]).findings
    ]


def test_the_report_names_the_rank_that_failed_first() -> None:
    merged = merge([later(training(2), 0.5), later(training(2), 0.2), later(training(2, failing=False), 0)])
    assert merged.notes[-1] == "rank 1 failed first, rank 0 300 ms later; 2 ranks failed in total"
    diagnosed = merge([diagnose(later(training(2), seconds)).trace for seconds in (0.5, 0.2)])
    [finding] = [each for each in diagnose(diagnosed).findings if each.severity == "error"]
    assert diagnosed.ops[finding.op].thread.rank == 1


def test_what_ranks_had_is_gone_when_they_are_merged_without_waiting_for_the_collector(tmp_path: Path) -> None:
    files = [format.save(with_rank(training(400), rank), tmp_path / f"run.rank{rank}.devtrace") for rank in range(3)]
    columns: list[weakref.ref[Ints]] = []

    def loaded() -> Iterator[TraceData]:
        for file in files:
            trace = in_own_pages(format.load(file))
            columns.extend(weakref.ref(trace.ops.ints(name)) for name in ("start", "name", "device"))
            yield trace

    gc.disable()
    try:
        merged = merge(loaded())
        assert len(merged.ops) == 3 * len(training(400).ops)
        assert [column() for column in columns] == [None] * 9
    finally:
        gc.enable()


def test_columns_in_pages_of_their_own_are_equal_and_cannot_be_written() -> None:
    trace = training(1000)
    moved = in_own_pages(trace)
    assert format.encode(moved) == format.encode(trace)
    assert moved.ops.ints("start") is not trace.ops.ints("start")
    assert not moved.ops.ints("start").flags.writeable


def of_job(rank: int) -> TraceData:
    """Return a rank; rank 2 does another op."""
    sample = Sample("train.py")
    for name in ("aten.mm", "aten.relu", "aten.item" if rank == 2 else "aten.add_"):
        sample.op(name, f"cuda:{rank}")
    return with_rank(sample.builder.build(), rank)


def test_the_title_of_a_job_names_few_ranks_one_by_one_and_many_by_their_ranges() -> None:
    assert merge([of_job(rank) for rank in range(3)]).title == "train.py (ranks 0, 1, 2)"
    assert merge([of_job(rank) for rank in (0, 1, 2, 3, 5)]).title == "train.py (ranks 0–3, 5)"
