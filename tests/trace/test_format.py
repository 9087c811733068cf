"""The trace format: what is written is read back, and what is damaged is refused with one sentence."""

from __future__ import annotations

import base64
import copy
import json
import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import trace_schema
from hypothesis import given
from hypothesis import strategies as st
from trace_dump import dump

from devtrace.api.results import Trace
from devtrace.trace import format
from devtrace.trace.tables import Lists, TraceData
from devtrace.words.errors import FormatError
from goldens import GOLDEN, assert_golden
from samples import memory_of_steps
from traces import empty_trace, half_trace, head_trace, odd_trace, story_trace

TRACES: dict[str, Callable[[], TraceData]] = {
    "empty": empty_trace,
    "half": half_trace,
    "head": head_trace,
    "memory": memory_of_steps,
    "odd": odd_trace,
    "story": story_trace,
}


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_dumps_to_its_golden_text(name: str) -> None:
    assert_golden(f"{name}.txt", dump(TRACES[name]()))


@pytest.mark.parametrize("name", TRACES)
def test_a_golden_file_is_what_is_written_today(name: str) -> None:
    assert_golden(f"{name}.devtrace", json.dumps(format.encode(TRACES[name]()), separators=(",", ":")))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.devtrace")), ids=lambda path: path.stem)
def test_every_golden_file_keeps_the_schema_and_dumps_to_its_text(path: Path) -> None:
    jsonschema.validate(json.loads(path.read_text()), trace_schema.schema())
    assert dump(format.load(path)) == path.with_suffix(".txt").read_text()


def test_the_shipped_schema_is_the_one_of_the_tables() -> None:
    assert_golden(trace_schema.FILE.name, trace_schema.text(), trace_schema.FILE.parent)


@pytest.mark.parametrize("name", TRACES)
def test_write_read_write_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    first = Trace.of(TRACES[name]()).save(tmp_path / "first.devtrace")
    second = Trace.of(format.load(first)).save(tmp_path / "second.devtrace")
    assert first.read_bytes() == second.read_bytes()


@given(st.lists(st.integers(-(2**40), 2**40), max_size=300), st.integers(1, 4))
def test_integers_survive_packing_whatever_their_size_and_repetition(values: list[int], repeats: int) -> None:
    column = np.array(values * repeats, np.int64)
    read = format._JsonReader({})._ints("x", json.loads(json.dumps(format._encode_ints(column))), wide=True)
    assert read.tolist() == column.tolist()


def test_a_column_that_repeats_is_packed_by_its_period() -> None:
    step = np.random.default_rng(0).integers(0, 1000, 500)
    packed = format._encode_ints(np.tile(step, 40))
    assert packed["lag"] % 500 == 0
    assert len(packed["data"]) < 2_500


@pytest.mark.parametrize("seed", range(20))
def test_the_period_of_a_column_is_the_distance_to_where_its_end_last_occurred(seed: int) -> None:
    draw = np.random.default_rng(seed)
    steps = np.tile(draw.integers(0, 3, int(draw.integers(1, 300))), 12).astype(np.int64)
    steps[: int(draw.integers(0, 200))] = 7  # what ran before the loop
    steps[draw.integers(0, len(steps))] += int(draw.integers(0, 2))  # and a step that was not like the others
    for window in (8, 64):
        raw, tail = steps.tobytes(), steps[-window:].tobytes()
        starts = [at for at in range(len(steps) - window) if raw[8 * at : 8 * at + 8 * window] == tail]
        nearest = len(steps) - window - starts[-1] if starts else 0
        assert format._period(steps, window) == nearest


def test_unknown_keys_are_ignored() -> None:
    data = format.encode(head_trace())
    data["colour"] = "red"
    data["ops"]["colour"] = [1]
    assert dump(format.decode(data)) == dump(head_trace())


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "not an object": (lambda data: [data], "trace-foreign"),
    "another format": (lambda data: data | {"format": "chrome"}, "trace-foreign"),
    "a newer version": (
        lambda data: data | {"version": 2},
        "a trace of version 2; this devtrace reads versions 1 to 1",
    ),
    "no version": (lambda data: data | {"version": None}, "the version is None"),
    "a version that is true": (lambda data: data | {"version": True}, "the version is True"),
    "no ops": (lambda data: data | {"ops": None}, "the table ops is missing"),
    "a column cut short": (lambda data: _with(data, "ops", grad=[1]), "ops.grad has 1 rows where ops.name has 4"),
    "a column of text": (lambda data: _with(data, "ops", grad=["1"] * 4), "ops.grad is not a list of integers"),
    "a column of NaN": (lambda data: _with(data, "ops", start=[float("nan")] * 4), "not a list of integers"),
    "time that falls": (lambda data: _with(data, "ops", start=[0, 9, 8, 9]), "ops.start is negative or falls"),
    "an absurd time": (lambda data: _with(data, "ops", start=[0, 1, 2, 2**60]), "not a list of integers"),
    "a device that is not there": (lambda data: _with(data, "ops", device=[0, 1, 2, 1]), "points outside the 2 rows"),
    "a string that is not there": (lambda data: data | {"strings": []}, "points outside the 0 rows of strings"),
    "calls that cross": (lambda data: _with(data, "calls", end=[2, 3, 4]), "calls must nest"),
    "offsets that fall": (
        lambda data: _with(data, "ops", inputs={"offsets": [0, 3, 1, 3, 6], "flat": [0] * 6}),
        "the offsets of ops.inputs",
    ),
    "a finding at no site": (lambda data: _finding(data, site=99), "finding 0 points to a site that is not there"),
    "a finding without words": (lambda data: _finding(data, message=3), "finding 0 has no message"),
    "packed nonsense": (lambda data: _packed(data, data="%%%"), "ops.grad is not base64"),
    "packed rubbish": (lambda data: _packed(data, data="AAAA"), "ops.grad does not decompress"),
    "a claim of much memory": (lambda data: _packed(data, length=10**12), "more than its"),
    "a length that is a lie": (lambda data: _packed(data, length=5), "decompresses to another length"),
}


def _with(data: dict[str, Any], table: str, /, **columns: object) -> dict[str, Any]:
    return data | {table: data[table] | columns}


def _finding(data: dict[str, Any], **fields: object) -> dict[str, Any]:
    return data | {"findings": [data["findings"][0] | fields]}


def _packed(trace: dict[str, Any], /, **fields: object) -> dict[str, Any]:
    good = base64.b64encode(zlib.compress(bytes(4))).decode()
    return _with(trace, "ops", grad={"length": 4, "width": 1, "lag": 0, "data": good} | fields)


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_trace_is_refused_with_one_sentence(case: str) -> None:
    damage, words = REFUSED[case]
    with pytest.raises(FormatError) as refused:
        format.decode(damage(format.encode(head_trace())))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_foreign_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "photo.devtrace").write_bytes(b"\x89PNG")
    with pytest.raises(FormatError, match=r"photo\.devtrace, which is not JSON"):
        format.load(tmp_path / "photo.devtrace")


def test_a_file_nested_deeper_than_python_can_follow_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.devtrace").write_text("[" * 100_000)
    with pytest.raises(FormatError, match="not JSON"):
        format.load(tmp_path / "deep.devtrace")


def test_a_bomb_is_refused_before_memory_is_taken() -> None:
    bomb = base64.b64encode(zlib.compress(bytes(300_000_000), 9)).decode()
    data = format.encode(head_trace())
    hostile = _with(data, "ops", grad={"length": 300_000_000, "width": 1, "lag": 0, "data": bomb})
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="over 100,000,000 values"):
            format.decode(hostile)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", range(200))
def test_a_mutated_file_is_read_or_refused_but_never_breaks_the_reader(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    original = (GOLDEN / f"{rng.choice(list(TRACES))}.devtrace").read_bytes()
    path = tmp_path / "mutated.devtrace"
    path.write_bytes(_mutated(original, rng))
    assert "\n" not in _read_or_refused(path)


def _read_or_refused(path: Path) -> str:
    try:
        dump(format.load(path))
    except FormatError as refused:
        return str(refused)
    return ""


def _mutated(raw: bytes, rng: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[at] = rng.randrange(32, 127)
        elif change == 1:
            del data[at : at + rng.randint(1, 40)]
        elif change == 2:
            data[at:at] = rng.choice([b"-", b"9" * 30, b"null", b"[]", b'"', b"1e999", b"NaN", b"{"])
        else:
            data = data[: max(at, 1)]
    return bytes(data)


def test_values_are_immutable_after_reading() -> None:
    trace = format.decode(copy.deepcopy(format.encode(head_trace())))
    inputs = trace.ops.column("inputs")
    assert isinstance(inputs, Lists)
    with pytest.raises(ValueError, match="read-only"):
        inputs.flat[0] = 1
