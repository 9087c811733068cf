"""The boxes of a lane in a static picture, as paths that stretch with the page, and the hatch over them.

A hatch is what tells two devices of one hue apart in print and to whoever sees no colour. A pattern would need an id
and a definition, which cleaners of svg take out, and which two pictures on one page would share. So a hatch is a few
dashed lines over the bar, each begun a little further to one side than the last. Without `vector-effect`, should that
be taken out too, the dashes are closer and nothing else is lost.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from devtrace.drawing.lanes import Floats
from devtrace.drawing.palette import Shade
from devtrace.trace.tables import Ints

COLUMNS: Final = 2000
"""Places across the width: half a pixel where a notebook's output is 1000 wide."""
HATCHED: Final = 250
"""The same for a hatch, which is drawn by several lines."""
WIDE_ENOUGH: Final = 3
"""Such places that hold a hatch: one and a half of its lines at 1000 px."""
PERIOD: Final = 8
"""Pixels from one line of a hatch to the next."""


class Stroke(NamedTuple):
    """One dashed line: the middle and the height of it as shares of the bar, its dashes and where they begin, in px."""

    middle: float
    height: float
    dashes: str
    begin: float = 0


def _steps(sign: int) -> tuple[Stroke, ...]:
    """A slanted line as a stair of four steps, which a bar of 22 px does not show to be one."""
    return tuple(Stroke((step + 0.5) / 4, 0.25, f"2 {PERIOD - 2}", sign * 2 * step) for step in range(4))


_ALONG: Final = (Stroke(0.3, 0.06, ""), Stroke(0.7, 0.06, ""))
_ACROSS: Final = (Stroke(0.5, 1, f"1.4 {PERIOD - 1.4}"),)
STROKES: Final[dict[str, tuple[Stroke, ...]]] = {
    "none": (),
    "diagonal": _steps(1),
    "back": _steps(-1),
    "cross": (*_steps(1), *_steps(-1)),
    "horizontal": _ALONG,
    "vertical": _ACROSS,
    "grid": (*_ALONG, *_ACROSS),
    "dots": (Stroke(0.3, 0.09, "2 4"), Stroke(0.7, 0.09, "2 4", 3)),
}


def hatched(top: int, height: int, shade: Shade, begin: Floats, end: Floats) -> str:
    """The hatch of a device over the boxes that begin and end at places from 0 to 1."""
    starts, stops = _columns(begin, end, HATCHED)
    wide = stops - starts >= WIDE_ENOUGH
    dashes = _dashes(starts[wide], stops[wide])
    lines = [_line(stroke, shade.ink, dashes, height) for stroke in STROKES[shade.hatch] if dashes]
    return stretched(top, height, "".join(lines), HATCHED)


def _line(stroke: Stroke, ink: str, dashes: str, height: int) -> str:
    """A stroke of a hatch along boxes ("M0 0h9m2 0h3") whose middle is at y 0."""
    start, _, rest = dashes.partition(" 0h")
    gaps = f' stroke-dasharray="{stroke.dashes}"' if stroke.dashes else ""
    begin = f' stroke-dashoffset="{stroke.begin:g}"' if stroke.begin else ""
    return (
        f'<path d="{start} {(stroke.middle - 0.5) * height:g}h{rest}" stroke="{ink}" stroke-opacity="0.4" '
        f'stroke-width="{stroke.height * height:.3g}"{gaps}{begin} vector-effect="non-scaling-stroke"/>'
    )


def stretched(top: int, height: int, content: str, columns: int = COLUMNS) -> str:
    """Boxes over the whole width, wherever that ends."""
    if not content:
        return ""
    return (
        f'<svg y="{top}" width="100%" height="{height}" viewBox="0 {-height / 2:g} {columns} {height}" '
        f'preserveAspectRatio="none">{content}</svg>'
    )


def path(run: str, height: int, attributes: str) -> str:
    return f'<path d="{run}" stroke-width="{height}" {attributes}/>' if run else ""


def run(begin: Floats, end: Floats, least: int = 1) -> str:
    """Boxes as one path of thick dashes."""
    return _dashes(*_columns(begin, end, COLUMNS, least))


def _columns(begin: Floats, end: Floats, columns: int, least: int = 1) -> tuple[Ints, Ints]:
    """Where stretches of boxes begin and end; those closer than a column become one."""
    first = np.minimum((begin * columns).astype(np.int64), columns - least)
    last = np.minimum(np.ceil(end * columns).astype(np.int64), columns)
    last = np.maximum(np.where(last - first > 3, last - 1, last), first + least)
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    opens = np.flatnonzero(first[1:] > last[:-1]) + 1
    return first[np.append(0, opens)[: len(first)]], last[np.append(opens, len(last))[: len(first)] - 1]


def _dashes(starts: Ints, stops: Ints) -> str:
    if not len(starts):
        return ""
    lengths, gaps = (stops - starts).tolist(), (starts[1:] - stops[:-1]).tolist()
    rest = [f"m{gap} 0h{length}" for gap, length in zip(gaps, lengths[1:], strict=True)]
    return "".join([f"M{starts[0]} 0h{lengths[0]}", *rest])
