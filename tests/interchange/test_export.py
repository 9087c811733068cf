"""What other tools are given: pandas and Perfetto."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from devtrace.api.results import Trace
from devtrace.trace.columns import TABLES
from devtrace.trace.tables import TraceData
from goldens import assert_golden
from samples import training
from traces import empty_trace, head_trace, odd_trace

TRACES = {"training": training(), "head": head_trace(), "odd": odd_trace(), "empty": empty_trace()}

# The Chrome trace format ("Trace Event Format"): the keys that each kind of entry must have.
KEYS = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    "i": {"name", "cat", "pid", "tid", "ts", "s", "args"},
}


def perfetto(trace: TraceData, folder: Path) -> list[dict[str, Any]]:
    written = json.loads(Trace.of(trace).to_perfetto(folder / "run.json").read_text())
    assert set(written) == {"displayTimeUnit", "otherData", "traceEvents"}
    entries: list[dict[str, Any]] = written["traceEvents"]
    return entries


@pytest.mark.parametrize("name", TRACES)
def test_perfetto_entries_keep_the_rules_of_the_format(name: str, tmp_path: Path) -> None:
    entries = perfetto(TRACES[name], tmp_path)
    named = {(e["pid"], e["tid"]) for e in entries if e["ph"] == "M" and e["name"] == "thread_name"}
    for entry in entries:
        assert set(entry) - {"ph"} == KEYS[entry["ph"]]
        assert isinstance(entry["pid"], int)
        assert all(math.isfinite(entry.get(time, 0)) and entry.get(time, 0) >= 0 for time in ("ts", "dur"))
        assert entry["ph"] == "M" or (entry["pid"], entry["tid"]) in named


@pytest.mark.parametrize("name", TRACES)
def test_perfetto_has_every_op_once(name: str, tmp_path: Path) -> None:
    ops = [entry["args"]["op"] for entry in perfetto(TRACES[name], tmp_path) if entry.get("cat") == "op"]
    assert ops == list(range(len(TRACES[name].ops)))


@pytest.mark.parametrize("name", ["training", "head"])
def test_perfetto_slices_of_a_thread_nest(name: str, tmp_path: Path) -> None:
    lanes = defaultdict(list)
    for entry in perfetto(TRACES[name], tmp_path):
        if entry["ph"] == "X":
            lanes[entry["pid"], entry["tid"]].append((entry["ts"], -entry["dur"]))
    for slices in lanes.values():
        open_ends: list[float] = []
        for start, negative in sorted(slices):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or start - negative <= open_ends[-1] + 1e-6
            open_ends.append(start - negative)


@pytest.mark.parametrize("name", ["training", "odd"])
def test_a_copy_is_an_arrow_between_slices_on_its_two_devices(name: str, tmp_path: Path) -> None:
    entries = perfetto(TRACES[name], tmp_path)
    slices = [(e["pid"], e["tid"], e["ts"], e["ts"] + e["dur"]) for e in entries if e["ph"] == "X"]
    flows = [entry for entry in entries if entry["ph"] in "sf"]
    assert Counter(flow["ph"] for flow in flows) == {"s": len(TRACES[name].copies), "f": len(TRACES[name].copies)}
    for flow in flows:
        inside = [s for s in slices if s[:2] == (flow["pid"], flow["tid"]) and s[2] <= flow["ts"] <= s[3]]
        assert inside, flow


def test_perfetto_names_the_lanes_the_tensors_the_site_and_the_finding(tmp_path: Path) -> None:
    entries = perfetto(head_trace(), tmp_path)
    assert [e["args"]["name"] for e in entries if e["name"] == "process_name"] == [
        "cpu",
        "cuda:0 (simulated)",
        "modules",
    ]
    failed = next(entry for entry in entries if entry.get("args", {}).get("raised"))
    assert failed["args"]["inputs"][0] == "model.out_head.bias float32 2 on cpu"
    assert failed["args"]["site"] == "In[7] line 6: self.out_head(x)"
    assert failed["args"]["module"] == "model.out_head"
    assert [entry["name"] for entry in entries if entry["ph"] == "i"] == ["RuntimeError", "device-mismatch"]


def test_pandas_columns_have_the_dtypes_that_one_computes_with() -> None:
    frames = training().to_pandas()
    assert set(frames) == {*TABLES, "findings"}
    ops = frames["ops"]
    assert {name: str(ops.dtypes[name]) for name in ops} == {
        "name": "category", "start": "timedelta64[ns]", "duration": "timedelta64[ns]", "device": "category",
        "kind": "category", "phase": "category", "call": "Int32", "site": "Int32", "thread": "Int32",
        "inputs": "object", "outputs": "object", "forward": "Int32", "grad": "boolean", "module": "category",
    }  # fmt: skip
    assert str(frames["tensors"].dtypes["bytes"]) == "int64"
    assert str(frames["copies"].dtypes["pinned"]) == "boolean"
    assert str(frames["devices"].dtypes["simulated"]) == "boolean"


def test_every_pandas_column_has_the_dtype_that_is_written_down() -> None:
    frames = training().to_pandas()
    kinds = [f"{table}.{name} {dtype}" for table, frame in frames.items() for name, dtype in frame.dtypes.items()]
    assert_golden("pandas-dtypes.txt", "\n".join(kinds) + "\n")


@pytest.mark.parametrize("name", ["odd", "head"])
def test_pandas_columns_of_another_trace_have_the_same_dtypes(name: str) -> None:
    frames, others = training().to_pandas(), TRACES[name].to_pandas()
    for table, frame in frames.items():
        for column in frame.columns.intersection(others[table].columns):
            assert str(others[table][column].dtype) == str(frame[column].dtype)


def test_pandas_answers_the_questions_that_one_has() -> None:
    trace = training(6)
    frames = trace.to_pandas()
    ops = frames["ops"]
    assert ops.groupby("device", observed=True).size().to_dict() == {"cuda:0": len(trace.ops)}
    assert ops["duration"].isna().sum() == 1
    assert ops[ops["duration"].isna()]["module"].tolist() == ["model.out_head"]
    assert frames["copies"]["bytes"].sum() == 6 * 98_304
    assert frames["findings"]["culprit"].tolist() == ["model.out_head.weight"]
    joined = ops.merge(frames["sites"], left_on="site", right_index=True)
    assert joined[joined["line"] == 5]["name_x" if "name_x" in joined else "name"].str.contains("backward|mm").all()
    assert frames["ledger"]["ops cuda:0"].tolist() == [24, 6]


@pytest.mark.parametrize("name", ["odd", "empty"])
def test_pandas_takes_every_trace(name: str) -> None:
    frames = TRACES[name].to_pandas()
    assert all(isinstance(frame, pd.DataFrame) for frame in frames.values())
    assert len(frames["ops"]) == len(TRACES[name].ops)
