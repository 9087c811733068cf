"""Each device's memory as a picture: kinds stacked, the limit as a line, the peak marked; one svg without a script.

Areas stretch with the page, text does not. Each kind has a letter, in its area and in the legend below, so that no
reader depends on colour.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from devtrace.drawing.strokes import COLUMNS
from devtrace.report.palette import Theme
from devtrace.report.parts import MEMORY_KINDS
from devtrace.runtime.tables import json_of
from devtrace.trace.curve import Curve
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import escape_markup, format_memory

HEIGHT: Final = 120
TITLE: Final = 18
ROW: Final = 16
LEGEND_COLUMNS: Final = 2
"""A third would run into the second where a page is 420 pixels wide."""
_MUCH_HIGHER: Final = 2
"""A limit so many times higher than the peak is no line: it would leave no room for the curve."""
_ROOM: Final = 12
_WIDE: Final = COLUMNS // 30
"""An area as high, and as wide, has room for its letter."""
_LOOKS: Final[dict[str, Any]] = json_of("drawing/curves_palette.json")


def colour(kind: str, theme: Theme = "light") -> str:
    return cast(str, _LOOKS[kind][theme])


def picture(curve: Curve, ops: int, theme: Theme = "light") -> str:
    """Draw a curve over all ops of its trace, with a legend."""
    kinds = list(curve.kinds)
    peak = max(int(curve.total[curve.peak]), 1)
    highest = curve.limit if peak < curve.limit < _MUCH_HIGHER * peak else peak
    x = np.clip(curve.ops, 0, ops) * COLUMNS // max(ops, 1)
    areas, letters, base = [], [], np.zeros(len(x), dtype=np.int64)
    for kind, sizes in kinds:
        outline = x, _distances_from_top(base, highest), _distances_from_top(base + sizes, highest)
        areas.append(f'<path d="{_area(*outline)}" fill="{colour(kind, theme)}"/>')
        letters.append(_letter_in_area(kind, outline, theme))
        base = base + sizes
    height = HEIGHT + TITLE + 8 + ROW * -(-len(kinds) // LEGEND_COLUMNS)
    limit = _limit(curve, highest) if 0 < curve.limit <= highest else ""
    label = escape_markup(title(curve))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{height}" role="img" visibility="visible" '
        f'aria-label="{label}" font-family="system-ui, sans-serif" font-size="11" fill="currentColor">'
        f'<text y="12">{label}</text>'
        f'<svg y="{TITLE}" width="100%" height="{HEIGHT}" viewBox="0 0 {COLUMNS} {HEIGHT}" preserveAspectRatio="none">'
        f'<rect width="{COLUMNS}" height="{HEIGHT}" fill="#808080" fill-opacity="0.1"/>{"".join(areas)}</svg>'
        f'<svg y="{TITLE}" width="100%" height="{HEIGHT}" overflow="visible">{"".join(letters)}{limit}'
        f"{_peak(curve, x, highest)}</svg>{_legend(curve, kinds, theme)}</svg>"
    )


def _distances_from_top(sizes: Any, highest: int) -> list[float]:
    """Return how far from the top each size is."""
    return [round(distance, 1) for distance in (HEIGHT * (1 - sizes / highest)).tolist()]


def _area(x: Any, bottom: Sequence[float], top: Sequence[float]) -> str:
    """Write the outline of a layer in steps: each point holds until the next."""
    upper_edge = "".join(f"H{position}V{y:g}" for position, y in zip(x.tolist(), top, strict=True))
    ends = [*x.tolist()[1:], COLUMNS]
    lower_edge = "".join(f"V{y:g}H{position}" for position, y in zip(x.tolist()[::-1], bottom[::-1], strict=True))
    return f"M{x[0]} {bottom[0]:g}{upper_edge}H{ends[-1]}{lower_edge}Z"


def _letter_in_area(kind: str, outline: tuple[Any, Sequence[float], Sequence[float]], theme: Theme) -> str:
    """Write a kind's letter into the longest stretch in which its area has room for it."""
    x, bottom, top = outline
    ends = [*x.tolist()[1:], COLUMNS]
    stretch = longest = range(0)
    for index in range(len(ends)):
        start = stretch.start if bottom[index] - top[index] >= _ROOM else index + 1
        stretch = range(start, index + 1)
        longest = max(longest, stretch, key=lambda steps: ends[steps[-1]] - x[steps[0]] if steps else 0)
    if not longest or ends[longest[-1]] - x[longest[0]] < _WIDE:
        return ""
    index = longest[len(longest) // 2]
    looks = _LOOKS[kind]
    position = f'x="{50 * (int(x[index]) + ends[index]) / COLUMNS:.1f}%" y="{(bottom[index] + top[index]) / 2 + 4:.1f}"'
    ink = f'font-weight="600" text-anchor="middle" fill="{looks[f"{theme}_ink"]}"'
    return f"<text {position} {ink}>{looks['letter']}</text>"


def _limit(curve: Curve, highest: int) -> str:
    y = HEIGHT * (1 - curve.limit / highest)
    label = escape_markup(sentence("memory.limit", size=format_memory(curve.limit)))
    line = f'<line x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-dasharray="5 4"/>'
    return f'{line}<text x="100%" y="{y + 12:.1f}" text-anchor="end">{label}</text>'


def _peak(curve: Curve, x: Any, highest: int) -> str:
    """Mark the highest point by a triangle above it."""
    y = HEIGHT * (1 - int(curve.total[curve.peak]) / highest)
    position = f'x="{100 * int(x[curve.peak]) / COLUMNS:.2f}%" y="{y:.1f}"'
    return f'<svg {position} overflow="visible"><path d="M-4 -7h8l-4 7z"/></svg>'


def title(curve: Curve) -> str:
    sizes = {"size": format_memory(int(curve.total[curve.peak])), "limit": format_memory(curve.limit)}
    key = "picture.memory-of" if curve.limit else "picture.memory" if curve.is_exact else "picture.memory-used"
    return sentence(key, device=curve.device, **sizes)


def _legend(curve: Curve, kinds: Sequence[tuple[str, Any]], theme: Theme) -> str:
    entries = []
    for index, (kind, sizes) in enumerate(reversed(kinds)):
        looks = _LOOKS[kind]
        x = 100 * (index % LEGEND_COLUMNS) // LEGEND_COLUMNS
        y = TITLE + HEIGHT + 8 + ROW * (index // LEGEND_COLUMNS)
        words = sentence("memory.part", size=format_memory(int(sizes[curve.peak])), kind=sentence(MEMORY_KINDS[kind]))
        entries.append(
            f'<svg x="{x}%" y="{y}" overflow="visible"><rect width="13" height="12" rx="3" fill="{looks[theme]}"/>'
            f'<text x="6.5" y="9.5" font-size="9" font-weight="600" text-anchor="middle" '
            f'fill="{looks[f"{theme}_ink"]}">{looks["letter"]}</text>'
            f'<text x="18" y="10">{escape_markup(words)}</text></svg>'
        )
    return "".join(entries)
