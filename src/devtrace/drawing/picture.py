"""What the static picture of a timeline is of: its scale, the lanes that have room, the findings that are flagged."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from devtrace.drawing.lanes import Floats, Lane, Scale, lanes
from devtrace.report import palette
from devtrace.trace.ledger_counts import waits
from devtrace.trace.tables import Ints, TraceData
from devtrace.trace.views import alike
from devtrace.words.catalogue import family

MOST_LANES: Final = 10
MOST_FLAGS: Final = 8
MOST_PHASES: Final = 300
"""Changes of phase that a ribbon can show; with more of them it would be a grey band."""
TOP: Final = 22
BAR: Final = 22
LANE: Final = BAR + 18


class LaneRow(NamedTuple):
    """A lane as drawn; its ops begin and end from 0 to 1."""

    lane: Lane
    top: int
    device: str
    shade: palette.Shade
    begin: Floats
    end: Floats


class Picture:
    """A trace, its scale, the lanes that are shown, and the errors and warnings with their numbers in the report."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.scale = Scale(trace)
        kind, devices = trace.ops.ints("kind"), trace.ops.ints("device")
        host = next((id for id, device in enumerate(trace.devices) if device == "cpu"), -1)
        self.waits = waits(kind == trace.string_id("sync"), devices, host)
        self.flagged = [
            (number, finding)
            for number, finding in enumerate(trace.findings or (), 1)
            if int(finding.get("op", -1)) >= 0 and finding.get("severity") != "note"
        ][:MOST_FLAGS]
        flagged = [int(finding["op"]) for _, finding in self.flagged]
        self.ranks = alike(trace, flagged)
        rank_of_thread = np.append(trace.threads.ints("rank"), -1)
        all_lanes = [lane for lane in lanes(trace) if rank_of_thread[lane.thread] in (-1, *self.ranks)]
        shown = choose(all_lanes, flagged)
        self.rows = list(self._rows(shown))
        self.hidden = len(all_lanes) - len(shown)

    @property
    def bottom(self) -> int:
        return self.rows[-1].top + BAR

    def ranks_of(self, lane: Lane) -> list[int]:
        """Return the ranks of a job for which a lane is drawn."""
        rank = self.trace.threads[lane.thread].rank if len(self.trace.threads) else -1
        is_job = sum(map(len, self.ranks.values())) > 1
        return self.ranks.get(rank, []) if is_job else []

    def _rows(self, shown: Sequence[Lane]) -> Iterator[LaneRow]:
        for index, lane in enumerate(shown):
            device = self.trace.devices[lane.device].name
            yield LaneRow(lane, TOP + index * LANE, device, palette.shade(device), *self.scale.spans(lane.ops))


def choose(every: Sequence[Lane], flagged: Sequence[int]) -> list[Lane]:
    """Choose the lanes that are shown: those with a finding, then the busiest, in their old order."""
    ranked = sorted(enumerate(every), key=lambda pair: (not np.isin(flagged, pair[1].ops).any(), -len(pair[1].ops)))
    return [every[index] for index in sorted(index for index, _ in ranked[:MOST_LANES])]


PHASE_NAMES: Final = family("picture.*", "picture.forward", "picture.backward", "picture.optimizer", "picture.other")
_PHASES: Final = (("forward", 0.22), ("backward", 0.45), ("optimizer", 0.75))


def phases(picture: Picture) -> list[tuple[str, float, Ints]]:
    """Return the phases that a ribbon shows; none if there is one phase only, or too many changes."""
    phase = picture.trace.ops.ints("phase")
    all_phases = ((name, opacity, np.flatnonzero(phase == picture.trace.string_id(name))) for name, opacity in _PHASES)
    present: list[tuple[str, float, Ints]] = [part for part in all_phases if len(part[2])]
    return present if len(present) > 1 and np.count_nonzero(np.diff(phase)) < MOST_PHASES else []
