"""Parts of a picture as svg: boxes that stretch with the page, and what does not."""

from typing import Final

import numpy as np

from devtrace.drawing.lanes import Floats

COLUMNS: Final = 2000
"""Columns across the width of the bars: half a pixel where a notebook's output is 1000 wide."""


def stretched(top: int, height: int, boxes: str, stroke: str) -> str:
    """Draw a run of boxes over the whole width, wherever that ends."""
    if not boxes:
        return ""
    return (
        f'<svg y="{top}" width="100%" height="{height}" viewBox="0 {-height / 2:g} {COLUMNS} {height}" '
        f'preserveAspectRatio="none"><path d="{boxes}" stroke-width="{height}" {stroke}/></svg>'
    )


def run(begin: Floats, end: Floats, least: int = 1) -> str:
    """Write boxes from 0 to 1 as one path of dashes ("M0 0h9m2 0h3"); those closer than a column become one."""
    if not len(begin):
        return ""
    left = np.minimum((begin * COLUMNS).astype(np.int64), COLUMNS - least)
    right = np.minimum(np.ceil(end * COLUMNS).astype(np.int64), COLUMNS)
    right = np.maximum(np.where(right - left > 3, right - 1, right), left + least)
    order = np.argsort(left, kind="stable")
    left, right = left[order], np.maximum.accumulate(right[order])
    gaps_before = np.flatnonzero(left[1:] > right[:-1]) + 1
    begins, ends = left[np.append(0, gaps_before)], right[np.append(gaps_before, len(right)) - 1]
    lengths, gaps = (ends - begins).tolist(), (begins[1:] - ends[:-1]).tolist()
    rest = [f"m{gap} 0h{length}" for gap, length in zip(gaps, lengths[1:], strict=True)]
    return "".join([f"M{begins[0]} 0h{lengths[0]}", *rest])


def unstretched(x: float, content: str) -> str:
    """Draw something at x (0 to 1) that does not stretch with the page."""
    return f'<svg x="{100 * x:.2f}%" overflow="visible">{content}</svg>'
