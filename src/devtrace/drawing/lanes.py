"""Positions of ops in a picture that cannot be zoomed: its lanes, and how far right each moment is.

Time runs to the right, but a long stretch in which nothing begins or ends (a kernel's first call, a wait) is
shortened. Else it would press all others into a line. Order and overlaps stay true.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from devtrace.report import palette
from devtrace.trace.tables import Ints, TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import in_short, safe_line
from devtrace.words.wrapping import columns, cut

Floats = npt.NDArray[np.float64]

LONGEST_SHARE: Final = 0.05
"""A stretch without change may take this share of the width: twenty of them fill it."""
CUT: Final = 3
"""A stretch shortened by more than this is marked, with its real length."""
LONGEST_DETAIL: Final = 15
"""Columns beside a lane: the gutter of a picture that is 500 wide."""
MOST_DETAILS: Final = 2


class Lane(NamedTuple):
    """One thread on one device, with its ops (ids in order). An op without a device is in no lane."""

    device: int
    thread: int
    ops: Ints


class Cut(NamedTuple):
    """A shortened stretch: its ends (0 to 1) and its real length."""

    begin: float
    end: float
    nanoseconds: int


class Scale:
    """Turns moments of a trace, in ns, into positions from 0 to 1."""

    def __init__(self, trace: TraceData) -> None:
        self._begins, self._ends = trace.ops.ints("start"), _ends(trace)
        self._moments = np.unique(np.concatenate([self._begins, self._ends]))
        stretches = np.diff(self._moments)
        limit = _limit(stretches)
        shown = np.concatenate([[0.0], np.cumsum(np.minimum(stretches, limit))])
        self._positions = shown / (shown[-1] or 1)
        # Shortened stretches, longest first.
        self.cuts = sorted(
            (
                Cut(float(self._positions[index]), float(self._positions[index + 1]), int(stretches[index]))
                for index in np.flatnonzero(stretches > CUT * limit).tolist()
            ),
            key=lambda cut: -cut.nanoseconds,
        )

    def spans(self, ops: Ints) -> tuple[Floats, Floats]:
        return self(self._begins[ops]), self(self._ends[ops])

    def __call__(self, moments: Ints) -> Floats:
        if not len(self._moments):
            return np.zeros(len(moments))
        return cast(Floats, np.interp(moments, self._moments, self._positions))


def _limit(stretches: Ints) -> float:
    """Return the longest that a stretch is drawn: the fixed point of limit = share * (sum of what is drawn)."""
    if not len(stretches):
        return 0.0
    share = max(LONGEST_SHARE, 2 / len(stretches))
    limit = float(stretches.max())
    for _ in range(60):  # it converges geometrically, by a factor below 1 - share
        limit = min(limit, share * float(np.minimum(stretches, limit).sum()))
    return limit


def _ends(trace: TraceData) -> Ints:
    """Return the end of each op. An op that raised has none: it is drawn as long as the median op."""
    duration = trace.ops.ints("duration").astype(np.int64)
    ended = duration[duration > 0]
    usual = int(np.median(ended)) if len(ended) else 1
    return trace.ops.ints("start") + np.where(duration < 0, usual, duration)


def lanes(trace: TraceData) -> list[Lane]:
    """Return every lane, by rank, device and thread."""
    device, thread = trace.ops.ints("device").astype(np.int64), trace.ops.ints("thread").astype(np.int64)
    width = max(len(trace.threads), 1)
    keys = np.where((device >= 0) & (thread >= 0), device * width + thread, -1)
    order = np.argsort(keys, kind="stable")
    lane_keys, starts = np.unique(keys[order], return_index=True)
    busy = [
        Lane(int(key) // width, int(key) % width, ops)
        for key, ops in zip(lane_keys, np.split(order, starts[1:]), strict=True)
        if key >= 0
    ]

    def rank_device_thread(lane: Lane) -> tuple[int, tuple[int, int, str], int]:
        rank = trace.threads[lane.thread].rank if len(trace.threads) else -1
        return rank, palette.order(trace.devices[lane.device].name), lane.thread

    return sorted(busy + _idle_lanes(trace, busy), key=rank_device_thread)


def _idle_lanes(trace: TraceData, busy: list[Lane]) -> list[Lane]:
    """Return a lane without ops for each device that only gave or received a copy, or that a finding names."""
    drawn = {lane.device for lane in busy}
    named = {name for finding in trace.findings or () for name in finding.get("devices", ())}
    touched = {id for id, device in enumerate(trace.devices) if device.name in named}
    touched |= set(trace.copies.ints("from").tolist()) | set(trace.copies.ints("to").tolist())
    return [Lane(device, 0, np.zeros(0, np.int64)) for device in sorted(touched - drawn) if device >= 0]


def details(trace: TraceData, lane: Lane, ranks: Sequence[int], *, threads: bool) -> list[str]:
    """Describe a lane in short lines, what matters most first; what has no room is left out."""
    parts = [sentence("picture.ranks", count=len(ranks), ranks=in_short(ranks))] if ranks else []
    if threads and len(trace.threads):
        parts.append(trace.threads[lane.thread].name)
    parts.append(sentence("picture.ops", count=len(lane.ops)))
    if trace.devices[lane.device].simulated:
        parts.append(sentence("picture.simulated"))
    lines: list[str] = []
    for part in (cut(safe_line(each), LONGEST_DETAIL) for each in parts):
        longer = f"{lines[-1]} · {part}" if lines else part
        if lines and columns(longer) <= LONGEST_DETAIL:
            lines[-1] = longer
        elif len(lines) < MOST_DETAILS:
            lines.append(part)
    return lines
