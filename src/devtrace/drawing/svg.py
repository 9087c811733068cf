"""The timeline as a picture: one svg of presentation attributes, for places where nothing of ours can run.

No script, no style, no background: text takes the page's own colour, so that light and dark both read. Bars stretch
with the page (a nested svg that may be distorted), text and arrows do not (their position is a percentage). Everything
is bounded: lanes, boxes, arrows and the length of any text. A box is a thick dash of one path, so the bars of a lane
are a single element however many ops it has. A lane has one device, named by letter and in full, so that
no reader depends on colour.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from devtrace.drawing import curves
from devtrace.drawing.lanes import details
from devtrace.drawing.picture import BAR, MOST_FLAGS, MOST_LANES, PHASE_NAMES, TOP, LaneRow, Picture, phases
from devtrace.drawing.strokes import run, stretched, unstretched
from devtrace.report import palette
from devtrace.trace.curve import Curve
from devtrace.trace.tables import TraceData
from devtrace.trace.views import total_time
from devtrace.words.catalogue import comma, sentence
from devtrace.words.text_format import escape_markup, format_bytes, format_time, safe_line, short_op_name
from devtrace.words.wrapping import columns

MOST_ARROWS: Final = 40
ROOM: Final = 0.13
"""The share of the bars' width that a label takes (55 px of 410, at 500)."""
MOST_NAMES: Final = 60
NARROWEST: Final = 430
"""Names are put into boxes that hold them even where the bars are only this many pixels wide."""


def timeline(trace: TraceData) -> str:
    """Draw a trace; empty where there is nothing to draw."""
    if not len(trace.ops):
        return ""
    picture = Picture(trace)
    if not picture.rows:
        return ""  # an op that failed before it had a device
    labels, bars, names = ("".join(draw(picture, row) for row in picture.rows) for draw in (_label, _bars, _names))
    flags = "".join(_flag(picture, number, finding) for number, finding in reversed(picture.flagged))
    above = f"{_arrows(picture)}{flags}{ribbon(picture)}{_cuts(picture)}"
    below, height = foot(picture)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{picture.bottom + 21 + height}" role="img" '
        f'visibility="visible" aria-label="{_summary(picture)}" font-family="system-ui, sans-serif" '
        f'font-size="11" fill="currentColor">'
        f'<svg width="{GUTTER - 1}%" overflow="visible">{labels}</svg>'
        f'<svg x="{GUTTER}%" width="{WIDE}%" overflow="visible">{bars}{names}{above}</svg>{below}</svg>'
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
    return "".join(part if index % 2 or not part else f"<![CDATA[{part}]]>" for index, part in enumerate(parts))


def _summary(picture: Picture) -> str:
    devices = comma().join(safe_line(name, 40) for name in list(picture.trace.devices)[:MOST_LANES])
    return escape_markup(sentence("picture.label", count=len(picture.trace.ops), devices=devices))


def _label(picture: Picture, row: LaneRow) -> str:
    shade = row.shade
    wide = 7 + 6 * len(shade.letter)
    threads = _several_threads(picture)
    lines = details(picture.trace, row.lane, picture.ranks_of(row.lane), threads=threads)
    return (
        f'<rect y="{row.top - 1}" width="{wide}" height="12" rx="3" fill="{shade.fill}"/>'
        f'<text x="{wide / 2}" y="{row.top + 8.5}" font-size="9" font-weight="600" text-anchor="middle" '
        f'fill="{shade.ink}">{escape_markup(shade.letter)}</text>'
        f'<text x="{wide + 5}" y="{row.top + 9}">{escape_markup(row.device, 40)}</text>'
    ) + "".join(
        f'<text y="{row.top + 21 + 11 * number}" font-size="9.5" opacity="0.75">{escape_markup(line)}</text>'
        for number, line in enumerate(lines)
    )


def _several_threads(picture: Picture) -> bool:
    """Return whether a rank has several threads among what is drawn."""
    threads = {row.lane.thread for row in picture.rows}
    ranks = {picture.trace.threads[thread].rank for thread in threads} if len(picture.trace.threads) else threads
    return len(threads) > len(ranks) or (len(threads) > 1 and ranks == {-1})


def _bars(picture: Picture, row: LaneRow) -> str:
    boxes = stretched(row.top, BAR, run(row.begin, row.end), f'stroke="{row.shade.fill}"')
    waits_begin = row.begin[picture.waits[row.lane.ops]]
    ticks = stretched(row.top - 5, 4, run(waits_begin, waits_begin, 2), 'stroke="currentColor"')
    background = f'<rect y="{row.top}" width="100%" height="{BAR}" rx="2" fill="#808080" fill-opacity="0.13"/>'
    return background + boxes + ticks


def _names(picture: Picture, row: LaneRow) -> str:
    """Write the names of ops into those boxes that are wide enough."""
    parts = []
    room, middle = (row.end - row.begin) * NARROWEST, 50 * (row.begin + row.end)
    for index in np.flatnonzero(room > 24)[:MOST_NAMES]:
        name = short_op_name(picture.trace.ops[int(row.lane.ops[index])].name)
        if 5.6 * len(name) + 6 < room[index]:
            style = f'font-size="10" text-anchor="middle" fill="{row.shade.ink}"'
            parts.append(f'<text x="{middle[index]:.2f}%" y="{row.top + 14.5}" {style}>{escape_markup(name)}</text>')
    return "".join(parts)


class _Arrow(NamedTuple):
    x: float
    tail: LaneRow
    head: LaneRow
    bytes: int
    copies: int


def _arrows(picture: Picture) -> str:
    copies = _joined_copies(picture, 80)
    if len(copies) > MOST_ARROWS:
        copies = _joined_copies(picture, MOST_ARROWS // 2)[:MOST_ARROWS]
    flags = [_x_of_op(picture, finding) for _, finding in picture.flagged]
    arrows = "".join(_arrow(arrow, _amount(arrow) if _has_room(arrow, copies, flags) else "") for arrow in copies)
    style = 'overflow="visible" stroke="currentColor" fill="none" opacity="0.85"'
    return f"<svg {style}>{arrows}</svg>" if arrows else ""


def _has_room(arrow: _Arrow, arrows: Sequence[_Arrow], flags: Sequence[float]) -> bool:
    """Return whether the label of an arrow, at its right, would be clear of other arrows, the flags and their words."""
    earlier = arrows[: arrows.index(arrow)]
    neighbours = [*(other.x for other in arrows), *(x for x in flags if x != arrow.x)]
    right_is_free = all(not 0 < x - arrow.x < ROOM for x in neighbours) and all(other.x != arrow.x for other in earlier)
    is_clear_of_first_flag = all(abs(arrow.x - x) > (4 if x > 0.5 else 1) * ROOM for x in flags[:1])
    return right_is_free and is_clear_of_first_flag and arrow.x < 1 - ROOM


def _amount(arrow: _Arrow) -> str:
    times = f"{arrow.copies:,} × " if arrow.copies > 1 else ""
    return times + format_bytes(arrow.bytes // arrow.copies)


def _joined_copies(picture: Picture, columns: int) -> list[_Arrow]:
    """Join copies that would be drawn on top of each other, most bytes first."""
    copies, arrows = picture.trace.copies, dict[tuple[int, int, int], _Arrow]()
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
            known = arrows.get(key, _Arrow(x, tail, head, 0, 0))
            arrows[key] = known._replace(bytes=known.bytes + amount, copies=known.copies + 1)
    return sorted(arrows.values(), key=lambda arrow: -arrow.bytes)


def _arrow(arrow: _Arrow, label: str) -> str:
    goes_down = arrow.head.top > arrow.tail.top
    begin = arrow.tail.top + (BAR if goes_down else 0)
    end = arrow.head.top + (0 if goes_down else BAR)
    barb = -5 if goes_down else 5
    ink = 'font-size="10" stroke="none" fill="currentColor"'
    text = f'<text x="5" y="{end - 5 if goes_down else end + 12}" {ink}>{label}</text>' if label else ""
    line = f"M0 {begin}V{end}m-3 {barb}l3 {-barb}l3 {barb}"
    return unstretched(arrow.x, f'<path d="{line}"/>{text}')


def _x_of_op(picture: Picture, finding: Mapping[str, Any]) -> float:
    begin, end = picture.scale.spans(np.array([int(finding["op"])]))
    return min(float(begin[0] + end[0]) / 2, LAST)


def _flag(picture: Picture, number: int, finding: Mapping[str, Any]) -> str:
    """Draw the numbered flag of a finding and a line down to its op; the first names its op, devices and culprit."""
    fill, x = palette.severity(finding["severity"]), _x_of_op(picture, finding)
    op_row = next((row for row in picture.rows if int(finding["op"]) in row.lane.ops), None)
    bottom = op_row.top if op_row else TOP
    words = ""
    if number == 1:
        words, culprit_top = _first_flag_text(picture, finding, x, fill)
        bottom = max(bottom, culprit_top)
    disc = (
        f'<circle cy="7.5" r="7.5" fill="{fill}"/><text y="11" font-size="10" font-weight="700" '
        f'text-anchor="middle" fill="#ffffff">{number}</text>'
    )
    line = f'<path d="M0 15V{bottom}" stroke="{fill}" stroke-width="1.5" stroke-dasharray="3 2"/>'
    ring, outline = _mark_of_op(picture, int(finding["op"]), op_row, fill)
    return outline + unstretched(x, line + ring + disc + words)


def _mark_of_op(picture: Picture, op: int, row: LaneRow | None, fill: str) -> tuple[str, str]:
    """Return (ring, outline) for an op, not both: a ring about x=0 over a narrow op, an outline of a wide one."""
    if row is None:
        return "", ""
    box = f'y="{row.top - 1}" height="{BAR + 2}" rx="2" stroke="{fill}" stroke-width="2"'
    [begin], [end] = picture.scale.spans(np.array([op]))
    if (end - begin) * SMALL < 10:  # pixels: narrower than the ring
        return f'<rect x="-5" width="10" fill="{fill}" fill-opacity="0.25" {box}/>', ""
    return "", f'<rect x="{100 * begin:.2f}%" width="{100 * (end - begin):.2f}%" fill="none" {box}/>'


def _first_flag_text(picture: Picture, finding: Mapping[str, Any], x: float, fill: str) -> tuple[str, int]:
    """Draw the text of the first flag; return it, and the top of the lane that it reaches down to."""
    name = short_op_name(picture.trace.ops[int(finding["op"])].name)
    devices = " + ".join(map(str, finding.get("devices") or ()))
    culprit = finding.get("culprit") or {}
    who = safe_line(str(culprit.get("name", "")), 60)
    row = next((row for row in picture.rows if row.device == culprit.get("device")), None)
    is_crossed = row is not None and _is_crossed(picture, row, x, columns(who))
    title = safe_line(" · ".join(filter(None, (name, devices, who if is_crossed else ""))), 80)
    is_left, is_free = _side_with_room(picture, x, columns(title))
    side = f'x="{-12 if is_left else 12}" text-anchor="{"end" if is_left else "start"}"'
    head = f'<text y="11" font-weight="600" {side}>{escape_markup(title)}</text>' if is_free else ""
    if row is None:
        return head, 0
    dot = f'<circle cy="{row.top + BAR / 2}" r="4.5" fill="{fill}" stroke="#ffffff"/>'
    below = "" if is_crossed else f'<text y="{row.top + BAR + 12}" {side}>{escape_markup(who)}</text>'
    return head + dot + below, row.top


def _is_crossed(picture: Picture, row: LaneRow, x: float, letters: int) -> bool:
    """Return whether arrows of copies would cross words of so many letters below a lane, on either side of a flag."""
    reach = (12 + LETTER * letters) / SMALL
    ends = ((arrow.x, sorted((arrow.tail.top, arrow.head.top))) for arrow in _joined_copies(picture, 80))
    return any(abs(arrow_x - x) < reach and top <= row.top < bottom for arrow_x, (top, bottom) in ends)


def _side_with_room(picture: Picture, x: float, letters: int) -> tuple[bool, bool]:
    """Return whether words go to the left of the first flag, and whether they are clear of the other flags there."""
    reach = (12 + 1.2 * LETTER * letters) / SMALL
    other_flags = [_x_of_op(picture, finding) for _, finding in picture.flagged[1:]]

    def is_free(left: bool) -> bool:
        begin, end = (x - reach, x) if left else (x, x + reach)
        return not any(begin - 8 / SMALL < other < end + 8 / SMALL for other in other_flags)

    left = x > 0.5  # the side that is longer
    other_fits = x > reach if not left else x + reach < 1
    return (not left, True) if other_fits and not is_free(left) and is_free(not left) else (left, is_free(left))


def _cuts(picture: Picture) -> str:
    path = f'<path d="M-5 {picture.bottom + 2}l4 -{BAR + 4}m2 {BAR + 4}l4 -{BAR + 4}" stroke="currentColor"/>'
    return "".join(unstretched((cut.begin + cut.end) / 2, path) for cut in picture.scale.cuts[:MOST_FLAGS])


def pictures(trace: TraceData, memory: Iterable[Curve]) -> str:
    """Draw the timeline and the memory of some devices; empty where there is nothing to draw."""
    return without_loose_words("".join([timeline(trace), *(curves.picture(curve, len(trace.ops)) for curve in memory)]))


# Below the lanes: which phase each moment is of, what the signs mean, and how long it took.

GUTTER: Final = 16
"""Percent of the width at the left for the names of lanes: 80 px at 500, enough for a chip and "cuda:0"."""
WIDE: Final = 82.5
"""Percent of the width for the bars; the rest, at the right, holds half a flag."""
FOOT: Final = 13
"""The height of a row of words below the lanes."""
SMALL: Final = 330
"""Pixels of the bars on a page of 420: what stands beside something else there has to have room."""
LAST: Final = 0.995
"""A flag stands no further to the right, where the rest at the right of a page of 420 would hold less than its half."""
LETTER: Final = 5.5
"""Pixels of a letter of the smallest text."""


def ribbon(picture: Picture) -> str:
    """Draw below the lanes in which part of a training step each moment is."""
    return "".join(
        stretched(
            picture.bottom + 6, 6, run(*picture.scale.spans(ops)), f'stroke="currentColor" stroke-opacity="{opacity}"'
        )
        for _, opacity, ops in phases(picture)
    )


def foot(picture: Picture) -> tuple[str, int]:
    """Explain the signs, and say what was left out and how long the trace took; return that with its height."""
    legend, legend_width = _legend(picture)
    trace, cuts = picture.trace, picture.scale.cuts
    syncs, copied = int(picture.waits.sum()), int(trace.copies.ints("bytes").sum())
    words = [sentence("picture.lanes", count=picture.hidden)] if picture.hidden else []
    if len(trace.copies):
        pinned = int((trace.copies.ints("pinned") > 0).sum())
        words += [sentence("picture.copies", count=len(trace.copies), size=copied)]
        words += [sentence("picture.pinned", count=pinned)] if pinned else []
    words += [sentence("picture.syncs", count=syncs)] if syncs else []
    words += [sentence("picture.cut", time=cuts[0].nanoseconds)] if cuts else []
    rows = _joined_in_rows([*words, format_time(total_time(trace))])
    above = 1 if legend_width and legend_width + LETTER * columns(rows[0]) > SMALL else 0
    text = "".join(
        f'<text x="{GUTTER + WIDE}%" y="{picture.bottom + 27 + FOOT * (index + above)}" font-size="10" opacity="0.85" '
        f'text-anchor="end">{row}</text>'
        for index, row in enumerate(rows)
    )
    return legend + text, FOOT * (len(rows) + above)


def _joined_in_rows(parts: Sequence[str]) -> list[str]:
    """Join words to rows that a small page has room for."""
    rows = [parts[0]]
    for part in parts[1:]:
        longer = f"{rows[-1]} · {part}"
        if LETTER * columns(longer) <= SMALL:
            rows[-1] = longer
        else:
            rows.append(part)
    return rows


def _legend(picture: Picture) -> tuple[str, int]:
    """Name the phases of the ribbon; return that with its width."""
    parts, x, y = [], 0, picture.bottom + 27
    for name, opacity, _ in phases(picture):
        word = sentence(PHASE_NAMES[name])
        parts.append(f'<rect x="{x}" y="{y - 8}" width="8" height="8" rx="1" fill-opacity="{opacity}"/>')
        parts.append(f'<text x="{x + 12}" y="{y}" font-size="10" opacity="0.85">{word}</text>')
        x += 24 + 6 * columns(word)
    return f'<svg x="{GUTTER}%" overflow="visible">{"".join(parts)}</svg>' if parts else "", x
