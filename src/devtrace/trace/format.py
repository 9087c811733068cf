"""The trace on disk and in a notebook, version 1: one JSON object that a browser reads without a library.

    {"format": "devtrace", "version": 1, "producer": "devtrace 0.1.0",
     "title": "In[7]", "recorded": "2026-11-21T12:00:00+00:00", "strings": [...],
     "devices": {"name": [0, 1], "simulated": [0, 1]}, ..., "findings": [...], "truncated": 0, "notes": []}

A table is an object of columns. A column of integers is a JSON list when short, else

    {"length": 1500, "width": 4, "lag": 300, "data": "<base64>"}

`data` is zlib over byte planes: all lowest bytes, then all next ones (`width` of them, little-endian, two's
complement), of x[i] - x[i - lag] (lag 0: of x itself). A lag of 1 is a plain delta; a training loop repeats itself
step by step, so the lag that fits one step turns whole columns into runs. A list column is
{"offsets": column, "flat": column}.

Versions: 1 (2026-11) the first.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from devtrace.runtime.whole_files import put
from devtrace.trace.checks import broken_rule
from devtrace.trace.columns import OPTIONAL_COLUMNS, OPTIONAL_TABLES, TABLES, Column
from devtrace.trace.curve import KINDS, Curve, Part
from devtrace.trace.tables import Ints, Lists, TraceData, Values
from devtrace.words.catalogue import sentence
from devtrace.words.errors import FormatError

ItemT = TypeVar("ItemT")
T = TypeVar("T")

VERSION: Final = 1
SHORT: Final = 24
"""Columns up to this long are plain JSON: below it the packed form is no smaller."""
LARGEST: Final = 2**53
"""Integers beyond this are not exact in a browser; nothing that we record comes near."""
MOST_CANDIDATES: Final = 32
"""So many ends of a stretch are compared as a whole in search of a column's period."""
MOST_VALUES: Final = 100_000_000
"""A file may hold this many integers in all (3 million ops): a reader takes memory for no more."""
MOST_BYTES: Final = 1 << 30
"""A file larger than this is not read."""
DEFLATE_RATIO: Final = 1100
"""Deflate cannot expand further (its limit is 1032): a column that claims more is lying, and is refused before memory
is taken."""

_UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""The step from each old version to the next; steps stay for ever."""


def encode(trace: TraceData) -> dict[str, Any]:
    """Return the trace as one JSON object."""
    return {
        "format": "devtrace",
        "version": VERSION,
        "producer": trace.producer,
        "title": trace.title,
        "recorded": trace.recorded,
        "strings": list(trace.strings),
        **{
            table: {column.name: _encode_values(trace.values[table][column.name]) for column in columns}
            for table, columns in TABLES.items()
            if table not in OPTIONAL_TABLES or len(trace.table(table))
        },
        "findings": None if trace.findings is None else [dict(finding) for finding in trace.findings],
        **({"language": trace.language} if trace.language else {}),
        **({"outcome": trace.outcome, "all_clear": trace.all_clear} if trace.outcome else {}),
        **({"closing": trace.closing} if trace.closing else {}),
        **({"memory": [_encode_curve(curve) for curve in trace.memory]} if trace.memory else {}),
        "truncated": trace.truncated,
        "notes": list(trace.notes),
    }


def decode(data: object) -> TraceData:
    """Read the trace that `encode` wrote; raise FormatError for anything else."""
    current = _upgrade(data)
    reader = _JsonReader(current)
    trace = TraceData(
        strings=reader.items("strings", str, "damage.texts"),
        values={table: reader.table(table) for table in TABLES},
        title=reader.text("title"),
        recorded=reader.text("recorded"),
        producer=reader.text("producer"),
        truncated=reader.number("truncated"),
        notes=reader.items("notes", str, "damage.texts"),
        findings=None if current.get("findings") is None else reader.items("findings", dict, "damage.objects"),
        language=reader.text("language"),
        outcome=reader.text("outcome"),
        closing=reader.text("closing"),
        memory=tuple(map(reader.curve, reader.items("memory", dict, "damage.objects"))),
        all_clear=current.get("all_clear") is True,
    )
    if broken := broken_rule(trace):
        raise _damaged(broken)
    return trace if "source" in current["copies"] else _with_sources(trace)


def _with_sources(trace: TraceData) -> TraceData:
    """Let each copy of an older file, which does not say what was copied, be of the first input of its op."""
    copies = trace.values["copies"]
    source = np.append(trace.ops.lists("inputs").first, -1)[trace.copies.ints("op")].astype(np.int32)
    return replace(trace, values={**trace.values, "copies": {**copies, "source": source}})


def _upgrade(data: object) -> dict[str, Any]:
    if not isinstance(data, dict) or data.get("format") != "devtrace":
        raise FormatError.of("trace-foreign", found=_excerpt(data))
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _damaged(sentence("damage.version", value=_excerpt(version)))
    if version > VERSION:
        raise FormatError.of("trace-newer", version=version, newest=VERSION)
    while version < VERSION:
        data = _UPGRADES[version](data)
        version += 1
    return data


def save(trace: TraceData, path: str | Path, **beside: Any) -> Path:
    """Write a trace, and what the file has beside it."""
    return put(path, json.dumps(encode(trace) | beside, separators=(",", ":")))


def load(path: str | Path) -> TraceData:
    return read(path, decode)


def read(path: str | Path, decode: Callable[[Any], T]) -> T:
    """Read a file, and decode its JSON."""
    source = Path(path)
    if source.stat().st_size > MOST_BYTES:
        raise FormatError.of("trace-too-large", file=source.name, size=source.stat().st_size, most=MOST_BYTES)
    try:
        return decode(json.loads(source.read_bytes()))
    except (ValueError, RecursionError) as error:
        raise FormatError.of("trace-foreign.file", file=source.name, fault=_excerpt(error)) from None


def _encode_values(values: Values) -> Any:
    if isinstance(values, Lists):
        lags = [int(values.offsets[-1] - values.offsets[-1 - period]) for period in _periods(values.offsets)]
        return {"offsets": _encode_ints(values.offsets), "flat": _encode_ints(values.flat, lags)}
    return _encode_ints(values)


def _encode_curve(curve: Curve) -> dict[str, Any]:
    """Write a curve: `bytes` has its points for the first part, then for the next."""
    return {
        "device": curve.device,
        "limit": curve.limit,
        "exact": curve.is_exact,
        "parts": [[part.kind, part.name] for part in curve.parts],
        "ops": _encode_ints(curve.ops),
        "bytes": _encode_ints(np.concatenate([part.bytes for part in curve.parts])),
    }


def _encode_ints(values: Ints, lags: Sequence[int] = ()) -> Any:
    if len(values) <= SHORT:
        return values.tolist()
    wide = values.astype(np.int64)
    lag = _best_lag(wide, lags)
    coded = _differences(wide, lag)
    width = _width(coded)
    planes = coded.astype(f"<i{width}").view(np.uint8).reshape(-1, width).T
    packed = zlib.compress(np.ascontiguousarray(planes).data, 6 if len(values) < 500_000 else 1)
    return {"length": len(values), "width": width, "lag": lag, "data": base64.b64encode(packed).decode("ascii")}


def _width(values: Ints) -> int:
    low, high = int(values.min()), int(values.max())
    return next(width for width in (1, 2, 4, 8) if -(1 << 8 * width - 1) <= low and high < 1 << 8 * width - 1)


def _differences(values: Ints, lag: int) -> Ints:
    if not lag:
        return values
    coded = values.copy()
    coded[lag:] -= values[:-lag]
    return coded


def _best_lag(values: Ints, lags: Sequence[int]) -> int:
    """Return the lag whose coding changes least often from one value to the next, a proxy for its deflated size."""

    def changes(lag: int) -> int:
        coded = _differences(values, lag)
        return int(np.count_nonzero(coded[1:] != coded[:-1]))

    return min([0, 1, *_periods(values), *(lag for lag in lags if lag < len(values))], key=changes)


def _periods(values: Ints) -> set[int]:
    """Return how far back the last steps occurred before. Steps, not values: the steps of a counter repeat.

    A short stretch finds repetition inside a training step (layers), a long one finds the training step.
    """
    steps = np.diff(values)
    windows = {min(64, len(steps) // 4), min(8192, len(steps) // 4)}
    return {period for window in windows if window >= 8 and (period := _period(steps, window)) > 1}


def _period(steps: Ints, window: int) -> int:
    """Return the distance from the last `window` steps to their last occurrence before; 0 if there is none.

    Candidates are sieved by a step here and there before any is compared as a whole: a search for the bytes takes
    seconds in a column that nearly repeats.
    """
    tail, last_index = steps[-window:], len(steps) - 1
    if np.array_equal(steps[-window - 1 : -1], tail):
        return 1
    ends = np.flatnonzero(steps[window - 1 : last_index] == tail[-1]) + window - 1
    offset = 1
    while offset < window and len(ends) > MOST_CANDIDATES:
        ends = ends[steps[ends - offset] == tail[-1 - offset]]
        offset = 2 * offset if offset < 16 else offset + offset // 4
    for end in ends[: -MOST_CANDIDATES - 1 : -1].tolist():
        if np.array_equal(steps[end + 1 - window : end + 1], tail):
            return int(last_index - end)
    return 0


class _JsonReader:
    """Reads a decoded JSON object, trusting nothing, and counts the integers that it takes memory for."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._values_left = MOST_VALUES

    def text(self, key: str) -> str:
        value = self._data.get(key, "")
        if not isinstance(value, str):
            raise _damaged(sentence("damage.text", where=key, value=_excerpt(value)))
        return value

    def items(self, key: str, kind: type[ItemT], kinds: str) -> tuple[ItemT, ...]:
        value = self._data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
            raise _damaged(sentence("damage.list", where=key, kinds=sentence(kinds)))
        return tuple(value)

    def number(self, key: str) -> int:
        value = self._data.get(key, 0)
        if not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise _damaged(sentence("damage.count", where=key, value=_excerpt(value)))
        return value

    def table(self, name: str) -> dict[str, Values]:
        table = self._data.get(name, {column.name: [] for column in TABLES[name]} if name in OPTIONAL_TABLES else None)
        if not isinstance(table, dict):
            raise _damaged(sentence("damage.table", name=name))
        missing = [each for table_name, each in OPTIONAL_COLUMNS if table_name == name and each not in table]
        present = (column for column in TABLES[name] if column.name not in missing)
        values = {column.name: self._values(name, column, table.get(column.name)) for column in present}
        return values | {each: np.full(len(values[TABLES[name][0].name]), -1, np.int32) for each in missing}

    def curve(self, data: dict[str, Any]) -> Curve:
        parts, ops = data.get("parts"), self._ints("memory.ops", data.get("ops"), wide=True)
        sizes = self._ints("memory.bytes", data.get("bytes"), wide=True)
        points, pairs = len(ops), parts if isinstance(parts, list) else []
        valid = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2 and pair[0] in KINDS]
        if not valid or not points or len(valid) < len(pairs) or len(sizes) != len(valid) * points:
            raise _damaged(sentence("damage.list", where="memory.parts", kinds=sentence("damage.objects")))
        curve_parts = tuple(
            Part(kind, str(name), sizes[at * points : (at + 1) * points]) for at, (kind, name) in enumerate(valid)
        )
        limit = data.get("limit")
        known_limit = limit if isinstance(limit, int) and limit > 0 else 0
        return Curve(str(data.get("device", "")), known_limit, data.get("exact") is True, ops, curve_parts)

    def _values(self, table: str, column: Column, data: Any) -> Values:
        where = f"{table}.{column.name}"
        if not column.is_list:
            return self._ints(where, data, wide=column.wide)
        if not isinstance(data, dict):
            raise _damaged(sentence("damage.offsets", where=where, value=_excerpt(data)))
        offsets = self._ints(f"{where}.offsets", data.get("offsets"), wide=True)
        return Lists(offsets, self._ints(f"{where}.flat", data.get("flat"), wide=column.wide))

    def _ints(self, where: str, data: Any, *, wide: bool) -> Ints:
        values = self._from_list(where, data) if isinstance(data, list) else self._from_packed(where, data)
        limit = LARGEST if wide else 2**31 - 1
        if len(values) and not (-limit <= int(values.min()) and int(values.max()) <= limit):
            raise _damaged(sentence("damage.number", where=where, limit=limit))
        array = values if wide else values.astype(np.int32)
        array.flags.writeable = False
        return array

    def _from_list(self, where: str, data: list[Any]) -> Ints:
        self._count_values(where, len(data))
        if not all(isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST for value in data):
            raise _damaged(sentence("damage.list", where=where, kinds=sentence("damage.integers")))
        return np.array(data, dtype=np.int64)

    def _from_packed(self, where: str, data: Any) -> Ints:
        length, width, lag, packed = _packed_parts(where, data)
        if length * width > DEFLATE_RATIO * len(packed):
            raise _damaged(sentence("damage.claim", where=where, length=length, size=len(packed)))
        self._count_values(where, length)
        raw = _inflate(where, packed, length * width)
        planes = np.frombuffer(raw, np.uint8).reshape(width, length)
        values = np.ascontiguousarray(planes.T).view(f"<i{width}").reshape(length).astype(np.int64)
        return _undo_differences(values, lag)

    def _count_values(self, where: str, values: int) -> None:
        self._values_left -= values
        if self._values_left < 0:
            raise _damaged(sentence("damage.total", where=where, most=MOST_VALUES))


def _packed_parts(where: str, data: Any) -> tuple[int, int, int, bytes]:
    if not isinstance(data, dict):
        raise _damaged(sentence("damage.column", where=where, value=_excerpt(data)))
    length, width, lag, text = (data.get(key) for key in ("length", "width", "lag", "data"))
    are_numbers = all(isinstance(number, int) and number >= 0 for number in (length, width, lag))
    if not are_numbers or width not in (1, 2, 4, 8) or not isinstance(text, str):
        raise _damaged(sentence("damage.packed", where=where))
    try:
        return int(length or 0), int(width), int(lag or 0), base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _damaged(sentence("damage.base64", where=where)) from None


def _inflate(where: str, packed: bytes, expected: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(packed, expected + 1)
    except zlib.error:
        raise _damaged(sentence("damage.compressed", where=where)) from None
    if len(raw) != expected or not inflater.eof:
        raise _damaged(sentence("damage.length", where=where, size=expected))
    return raw


def _undo_differences(values: Ints, lag: int) -> Ints:
    """Undo `_differences`: a running sum along each of `lag` interleaved strands."""
    length = len(values)
    if not 0 < lag < length:
        return values
    rows = -(-length // lag)
    padded = np.zeros(rows * lag, np.int64)
    padded[:length] = values
    summed: Ints = np.cumsum(padded.reshape(rows, lag), axis=0, dtype=np.int64).reshape(-1)[:length]
    return summed


def _damaged(found: str) -> FormatError:
    return FormatError.of("trace-damaged", found=found)


def _excerpt(value: object) -> str:
    """A value from a foreign file, for a message: never long, never more than one line."""
    text = repr(value) if not isinstance(value, Exception) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
