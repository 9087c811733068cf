"""The timeline as a picture: one svg of presentation attributes, for places where nothing of ours can run.

No script, no style, no background: text takes the page's own colour, so that light and dark both read. Bars stretch
with the page (a nested svg that may be distorted), text and arrows do not (their position is a percentage). Everything
is bounded: lanes, boxes, arrows and the length of any text. A box is a thick dash of one path, so the bars of a lane
are a single element however many ops it has. A lane has one device, named by letter and in full, so that
no reader depends on colour.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from devtrace.drawing import job_lanes, palette
from devtrace.drawing.lanes import Floats, Lane, Scale, details, lanes
from devtrace.drawing.strokes import run, stretched, unstretched
from devtrace.trace.ledger_counts import waits
from devtrace.trace.tables import Ints, TraceData
from devtrace.words.catalogue import comma, sentence
from devtrace.words.ranges import in_short
from devtrace.words.text_format import escape_markup, format_bytes, format_time, safe_line, short_op_name
from devtrace.words.wrapping import columns

MOST_LANES: Final = 10
MOST_ARROWS: Final = 40
ROOM: Final = 0.13
"""The share of the bars' width that a label takes (55 px of 410, at 500)."""
MOST_FLAGS: Final = 8
MOST_NAMES: Final = 60
MOST_PHASES: Final = 300
"""Changes of phase that a ribbon can show; with more of them it would be a grey band."""
GUTTER: Final = 16
"""Percent of the width at the left for the names of lanes: 80 px at 500, enough for a chip and "cuda:0"."""
WIDE: Final = 82.5
"""Percent of the width for the bars; the rest, at the right, holds half a flag."""
TOP: Final = 22
BAR: Final = 22
LANE: Final = BAR + 18
TITLE: Final = 18
"""Above the first lane of some ranks, for their title."""
NARROWEST: Final = 430
"""Names are put into boxes that hold them even where the bars are only this many pixels wide."""


class _Row(NamedTuple):
    """A lane as drawn; its ops begin and end from 0 to 1."""

    lane: Lane
    top: int
    device: str
    shade: palette.Shade
    begin: Floats
    end: Floats


class _Picture:
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
        self.ranks = job_lanes.alike(trace, flagged)
        self.bars = job_lanes.collectives(trace) if self.is_job else None
        every = job_lanes.drawn(lanes(trace), trace, self.ranks)
        chosen = _choose(every, flagged)
        self.rows = list(self._rows(chosen))
        self.hidden = len(every) - len(chosen)

    @property
    def bottom(self) -> int:
        return self.rows[-1].top + BAR

    @property
    def is_job(self) -> bool:
        return sum(map(len, self.ranks.values())) > 1

    def title_of(self, row: _Row) -> str:
        """Return the title of a job's ranks: the same above all their lanes."""
        rank = self.trace.threads[row.lane.thread].rank if len(self.trace.threads) else -1
        if not self.is_job or rank < 0:
            return ""
        total, ranks = sum(map(len, self.ranks.values())), self.ranks.get(rank, [rank])
        return sentence("picture.ranks", count=len(ranks), ranks=in_short(ranks), total=total)

    def _rows(self, chosen: Sequence[Lane]) -> Iterator[_Row]:
        top, above = TOP, ""
        for lane in chosen:
            row = self._row(lane, top)
            title = self.title_of(row)
            if title and title != above:
                row = row._replace(top=top + TITLE)
            top, above = row.top + LANE, title
            yield row

    def _row(self, lane: Lane, top: int) -> _Row:
        device = self.trace.devices[lane.device].name
        return _Row(lane, top, device, palette.shade(device), *self.scale.spans(lane.ops))


def timeline(trace: TraceData) -> str:
    """Draw a trace; empty where there is nothing to draw."""
    if not len(trace.ops):
        return ""
    picture = _Picture(trace)
    if not picture.rows:
        return ""  # an op that failed before it had a device
    labels, bars, names = ("".join(draw(picture, row) for row in picture.rows) for draw in (_label, _bar, _names))
    bars = _collectives(picture) + bars
    flags = "".join(_flag(picture, number, finding) for number, finding in reversed(picture.flagged))
    above = f"{_arrows(picture)}{flags}{_ribbon(picture)}{_cuts(picture)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{picture.bottom + 34}" role="img" '
        f'visibility="visible" aria-label="{_summary(picture)}" font-family="system-ui, sans-serif" '
        f'font-size="11" fill="currentColor">'
        f'<svg width="{GUTTER - 1}%" overflow="visible">{labels}</svg>{_titles(picture)}'
        f'<svg x="{GUTTER}%" width="{WIDE}%" overflow="visible">{bars}{names}{above}</svg>{_foot(picture)}</svg>'
    )


def without_loose_words(svg: str) -> str:
    """Put the words of a picture into CDATA, which html knows in svg only.

    What cleans html may take tags away and leave the words between them; CDATA goes with the tags.
    """
    return _TEXT.sub(lambda text: f"{text[1]}{_in_cdata(text[2])}</text>", svg)


_TEXT: Final = re.compile(r"(<text\b[^>]*>)([^<]*)</text>")


def _in_cdata(escaped: str) -> str:
    """Keep what is escaped (a < of a name) outside, where nothing can take it for markup."""
    parts = re.split(r"(&[#\w]+;)", escaped)
    return "".join(part if at % 2 or not part else f"<![CDATA[{part}]]>" for at, part in enumerate(parts))


def _summary(picture: _Picture) -> str:
    devices = comma().join(safe_line(name, 40) for name in list(picture.trace.devices)[:MOST_LANES])
    return escape_markup(sentence("picture.label", count=len(picture.trace.ops), devices=devices))


def _choose(every: Sequence[Lane], flagged: Sequence[int]) -> list[Lane]:
    """Choose the lanes that are shown: those with a finding, then the busiest, in their old order."""
    ranked = sorted(enumerate(every), key=lambda at: (not np.isin(flagged, at[1].ops).any(), -len(at[1].ops)))
    return [every[at] for at in sorted(at for at, _ in ranked[:MOST_LANES])]


def _label(picture: _Picture, row: _Row) -> str:
    shade = row.shade
    wide = 7 + 6 * len(shade.letter)
    threads = _several_threads(picture)
    lines = details(picture.trace, row.lane, threads=threads)
    return (
        f'<rect y="{row.top - 1}" width="{wide}" height="12" rx="3" fill="{shade.fill}"/>'
        f'<text x="{wide / 2}" y="{row.top + 8.5}" font-size="9" font-weight="600" text-anchor="middle" '
        f'fill="{shade.ink}">{escape_markup(shade.letter)}</text>'
        f'<text x="{wide + 5}" y="{row.top + 9}">{escape_markup(row.device, 40)}</text>'
    ) + "".join(
        f'<text y="{row.top + 21 + 11 * number}" font-size="9.5" opacity="0.75">{escape_markup(line)}</text>'
        for number, line in enumerate(lines)
    )


def _several_threads(picture: _Picture) -> bool:
    """Return whether a rank has several threads among what is drawn."""
    threads = {row.lane.thread for row in picture.rows}
    ranks = {picture.trace.threads[thread].rank for thread in threads} if len(picture.trace.threads) else threads
    return len(threads) > len(ranks) or (len(threads) > 1 and ranks == {-1})


def _titles(picture: _Picture) -> str:
    """Write above the first lane of a job's ranks which they are, with a line that sets them off."""
    parts, above = [], ""
    for row in picture.rows:
        title = picture.title_of(row)
        if title and title != above:
            line = f'y="{row.top - TITLE - 3}" width="100%" height="1" fill="currentColor" fill-opacity="0.25"'
            parts.append(f"<rect {line}/>" if above else "")
            parts.append(f'<text y="{row.top - 7}" font-weight="600">{escape_markup(title)}</text>')
        above = title
    return "".join(parts)


def _collectives(picture: _Picture) -> str:
    """Draw each collective as one bar across the lanes."""
    if picture.bars is None or not len(picture.bars.begin):
        return ""
    boxes = run(picture.scale(picture.bars.begin), picture.scale(picture.bars.end), 3)
    return stretched(TOP - 3, picture.bottom - TOP + 6, boxes, 'stroke="currentColor" stroke-opacity="0.22"')


def _bar(picture: _Picture, row: _Row) -> str:
    boxes = stretched(row.top, BAR, run(row.begin, row.end), f'stroke="{row.shade.fill}"')
    at = row.begin[picture.waits[row.lane.ops]]
    ticks = stretched(row.top - 5, 4, run(at, at, 2), 'stroke="currentColor"')
    back = f'<rect y="{row.top}" width="100%" height="{BAR}" rx="2" fill="#808080" fill-opacity="0.13"/>'
    return back + boxes + ticks


def _names(picture: _Picture, row: _Row) -> str:
    """Write the names of ops into those boxes that are wide enough."""
    parts = []
    room, middle = (row.end - row.begin) * NARROWEST, 50 * (row.begin + row.end)
    for at in np.flatnonzero(room > 24)[:MOST_NAMES]:
        name = short_op_name(picture.trace.ops[int(row.lane.ops[at])].name)
        if 5.6 * len(name) + 6 < room[at]:
            style = f'font-size="10" text-anchor="middle" fill="{row.shade.ink}"'
            parts.append(f'<text x="{middle[at]:.2f}%" y="{row.top + 14.5}" {style}>{escape_markup(name)}</text>')
    return "".join(parts)


class _Arrow(NamedTuple):
    x: float
    tail: _Row
    head: _Row
    bytes: int
    copies: int


def _arrows(picture: _Picture) -> str:
    found = _gathered(picture, 80)
    if len(found) > MOST_ARROWS:
        found = _gathered(picture, MOST_ARROWS // 2)[:MOST_ARROWS]
    worded = [_middle(picture, finding) for _, finding in picture.flagged[:1]]
    return "".join(_arrow(arrow, _amount(arrow) if _has_room(arrow, found, worded) else "") for arrow in found)


def _has_room(arrow: _Arrow, found: Sequence[_Arrow], worded: Sequence[float]) -> bool:
    """Return whether the label of an arrow, at its right, would be clear of other arrows and of the flag's words."""
    before = found[: found.index(arrow)]
    free = all(not 0 < other.x - arrow.x < ROOM for other in found) and all(other.x != arrow.x for other in before)
    clear = all(abs(arrow.x - x) > (4 if x > 0.5 else 1) * ROOM for x in worded)
    return free and clear and arrow.x < 1 - ROOM


def _amount(arrow: _Arrow) -> str:
    times = f"{arrow.copies:,} × " if arrow.copies > 1 else ""
    return times + format_bytes(arrow.bytes // arrow.copies)


def _gathered(picture: _Picture, columns: int) -> list[_Arrow]:
    """Join copies that would be drawn on top of each other, most bytes first."""
    copies, gathered = picture.trace.copies, dict[tuple[int, int, int], _Arrow]()
    ops = copies.ints("op")
    xs, threads = picture.scale.spans(ops)[0], picture.trace.ops.ints("thread")[ops]
    by_lane = {(row.lane.device, row.lane.thread): row for row in picture.rows}
    by_device = {row.lane.device: row for row in reversed(picture.rows)}
    fields = (xs, threads, copies.ints("from"), copies.ints("to"), copies.ints("bytes"))
    for x, thread, source, to, amount in zip(*(field.tolist() for field in fields), strict=True):
        tail = by_lane.get((source, thread), by_device.get(source))
        head = by_lane.get((to, thread), by_device.get(to))
        if tail is not None and head is not None and tail is not head:
            key = (int(x * columns), tail.top, head.top)
            known = gathered.get(key, _Arrow(x, tail, head, 0, 0))
            gathered[key] = known._replace(bytes=known.bytes + amount, copies=known.copies + 1)
    return sorted(gathered.values(), key=lambda arrow: -arrow.bytes)


def _arrow(arrow: _Arrow, label: str) -> str:
    down = arrow.head.top > arrow.tail.top
    begin = arrow.tail.top + (BAR if down else 0)
    end = arrow.head.top + (0 if down else BAR)
    back = -5 if down else 5
    text = f'<text x="5" y="{end - 5 if down else end + 12}" font-size="10">{label}</text>' if label else ""
    line = f"M0 {begin}V{end}m-3 {back}l3 {-back}l3 {back}"
    return unstretched(arrow.x, f'<path d="{line}" stroke="currentColor" fill="none"/>{text}', 'opacity="0.85"')


def _middle(picture: _Picture, finding: Mapping[str, Any]) -> float:
    begin, end = picture.scale.spans(np.array([int(finding["op"])]))
    return float(begin[0] + end[0]) / 2


def _flag(picture: _Picture, number: int, finding: Mapping[str, Any]) -> str:
    """Draw the numbered flag of a finding and a line down to its op; the first names its op, devices and culprit."""
    fill, x = palette.severity(finding["severity"]), _middle(picture, finding)
    own = next((row for row in picture.rows if int(finding["op"]) in row.lane.ops), None)
    low = own.top if own else TOP
    words = ""
    if number == 1:
        words, other = _words(picture, finding, x, fill)
        low = max(low, other)
    disc = (
        f'<circle cy="7.5" r="7.5" fill="{fill}"/><text y="11" font-size="10" font-weight="700" '
        f'text-anchor="middle" fill="#ffffff">{number}</text>'
    )
    ring = (
        ""
        if own is None
        else (
            f'<rect x="-5" y="{own.top - 1}" width="10" height="{BAR + 2}" rx="2" fill="{fill}" fill-opacity="0.25" '
            f'stroke="{fill}" stroke-width="2"/>'
        )
    )
    line = f'<path d="M0 15V{low}" stroke="{fill}" stroke-width="1.5" stroke-dasharray="3 2"/>'
    return unstretched(x, line + ring + disc + words)


def _words(picture: _Picture, finding: Mapping[str, Any], x: float, fill: str) -> tuple[str, int]:
    """Write the words of the first flag, and return how far down they reach."""
    left = x > 0.5
    side = f'x="{-12 if left else 12}" text-anchor="{"end" if left else "start"}"'
    name = short_op_name(picture.trace.ops[int(finding["op"])].name)
    devices = " + ".join(map(str, finding.get("devices") or ()))
    head = (
        f'<text y="11" font-weight="600" {side}>{escape_markup(f"{name} · {devices}" if devices else name, 80)}</text>'
    )
    culprit = finding.get("culprit") or {}
    row = next((row for row in picture.rows if row.device == culprit.get("device")), None)
    if row is None:
        return head, 0
    dot = f'<circle cy="{row.top + BAR / 2}" r="4.5" fill="{fill}" stroke="#ffffff"/>'
    who = escape_markup(safe_line(str(culprit.get("name", "")), 60))
    return head + dot + f'<text y="{row.top + BAR + 12}" {side}>{who}</text>', row.top


_PHASES: Final = (("forward", 0.22), ("backward", 0.45), ("optimizer", 0.75))


def _phases(picture: _Picture) -> list[tuple[str, float, Ints]]:
    """Return the phases that a ribbon shows; none if there is one phase only, or too many changes."""
    phase = picture.trace.ops.ints("phase")
    every = ((name, opacity, np.flatnonzero(phase == picture.trace.string_id(name))) for name, opacity in _PHASES)
    found: list[tuple[str, float, Ints]] = [part for part in every if len(part[2])]
    return found if len(found) > 1 and np.count_nonzero(np.diff(phase)) < MOST_PHASES else []


def _ribbon(picture: _Picture) -> str:
    """Draw below the lanes in which part of a training step each moment is."""
    return "".join(
        stretched(
            picture.bottom + 6, 6, run(*picture.scale.spans(ops)), f'stroke="currentColor" stroke-opacity="{opacity}"'
        )
        for _, opacity, ops in _phases(picture)
    )


def _cuts(picture: _Picture) -> str:
    path = f'<path d="M-5 {picture.bottom + 2}l4 -{BAR + 4}m2 {BAR + 4}l4 -{BAR + 4}" stroke="currentColor"/>'
    return "".join(unstretched((cut.begin + cut.end) / 2, path) for cut in picture.scale.cuts[:MOST_FLAGS])


def _foot(picture: _Picture) -> str:
    """Explain the signs, and say what was left out and how long the trace took."""
    y = picture.bottom + 27
    trace, cuts = picture.trace, picture.scale.cuts
    syncs, copied = int(picture.waits.sum()), int(trace.copies.ints("bytes").sum())
    words = [sentence("picture.lanes", count=picture.hidden)] if picture.hidden else []
    if len(trace.copies):
        pinned = int((trace.copies.ints("pinned") > 0).sum())
        words += [sentence("picture.copies", count=len(trace.copies), size=copied)]
        words += [sentence("picture.pinned", count=pinned)] if pinned else []
    words += [sentence("picture.syncs", count=syncs)] if syncs else []
    together = len(picture.bars.begin) if picture.bars is not None else 0
    words += [sentence("picture.collectives", count=together)] if together else []
    words += [sentence("picture.cut", time=cuts[0].nanoseconds)] if cuts else []
    words += [format_time(picture.scale.total)]
    return (
        f'{_legend(picture, y)}<text x="{GUTTER + WIDE}%" y="{y}" font-size="10" opacity="0.85" text-anchor="end">'
        f"{' · '.join(words)}</text>"
    )


def _legend(picture: _Picture, y: int) -> str:
    parts, x = [], 0
    for name, opacity, _ in _phases(picture):
        word = sentence(f"picture.{name}")
        parts.append(f'<rect x="{x}" y="{y - 8}" width="8" height="8" rx="1" fill-opacity="{opacity}"/>')
        parts.append(f'<text x="{x + 12}" y="{y}" font-size="10" opacity="0.85">{word}</text>')
        x += 24 + 6 * columns(word)
    return f'<svg x="{GUTTER}%" overflow="visible">{"".join(parts)}</svg>' if parts else ""
