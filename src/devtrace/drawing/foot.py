"""Below the lanes of a static picture: which phase each moment is of, what its signs mean, and how long it took."""

from collections.abc import Sequence
from typing import Final

from devtrace.drawing.picture import PHASE_NAMES, Picture, phases
from devtrace.drawing.strokes import run, stretched
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import format_time
from devtrace.words.wrapping import columns

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
    legend, wide = _legend(picture)
    trace, cuts = picture.trace, picture.scale.cuts
    syncs, copied = int(picture.waits.sum()), int(trace.copies.ints("bytes").sum())
    words = [sentence("picture.lanes", count=picture.hidden)] if picture.hidden else []
    if len(trace.copies):
        pinned = int((trace.copies.ints("pinned") > 0).sum())
        words += [sentence("picture.copies", count=len(trace.copies), size=copied)]
        words += [sentence("picture.pinned", count=pinned)] if pinned else []
    words += [sentence("picture.syncs", count=syncs)] if syncs else []
    words += [sentence("picture.cut", time=cuts[0].nanoseconds)] if cuts else []
    rows = _rows_of([*words, format_time(picture.scale.total)])
    apart = 1 if wide and wide + LETTER * columns(rows[0]) > SMALL else 0
    text = "".join(
        f'<text x="{GUTTER + WIDE}%" y="{picture.bottom + 27 + FOOT * (at + apart)}" font-size="10" opacity="0.85" '
        f'text-anchor="end">{row}</text>'
        for at, row in enumerate(rows)
    )
    return legend + text, FOOT * (len(rows) + apart)


def _rows_of(words: Sequence[str]) -> list[str]:
    """Join words to rows that a small page has room for."""
    rows = [words[0]]
    for word in words[1:]:
        longer = f"{rows[-1]} · {word}"
        if LETTER * columns(longer) <= SMALL:
            rows[-1] = longer
        else:
            rows.append(word)
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
