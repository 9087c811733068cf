"""Plotly figures of a trace, for papers and notebooks: the time of ops by device and by dtype.

Colours and hatches are those of every other view.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from plotly.graph_objects import Figure

from devtrace.drawing.picture import PHASE_NAMES
from devtrace.report import palette
from devtrace.report.palette import Theme
from devtrace.trace.columns import PHASES
from devtrace.trace.subset import Mask
from devtrace.trace.tables import TraceData
from devtrace.trace.views import Whole, durations
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError
from devtrace.words.text_format import escape_markup, safe_line

_Part = dict[str, Any]
_PATTERN: Final = {
    "none": "", "diagonal": "/", "back": "\\", "horizontal": "-", "vertical": "|", "cross": "x", "grid": "+",
    "dots": ".",
}  # fmt: skip


def figure(trace: TraceData, kind: str, theme: Theme = "light") -> Figure:
    """A plotly Figure: kind is "devices" or "dtypes"."""
    if kind not in FIGURES:
        raise UsageError.of("figure-unknown", kind=repr(safe_line(kind, 40)), kinds=[repr(name) for name in FIGURES])
    return FIGURES[kind](trace, theme)


def _canvas(traces: Sequence[Any], title: str, theme: Theme, **layout: Any) -> Figure:
    drawn = Figure(list(traces))
    drawn.update_layout(
        template="plotly_dark" if theme == "dark" else "plotly_white",
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 15}},
        font={"size": 12},
        margin={"l": 10, "r": 20, "t": 60, "b": 40},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right", "traceorder": "normal"},
        bargap=0.35,
        hoverlabel={"align": "left"},
    )
    drawn.update_layout(**layout)
    if not traces:
        drawn.add_annotation(text=sentence("figure.nothing"), showarrow=False, font={"size": 14})
        drawn.update_xaxes(visible=False)
        drawn.update_yaxes(visible=False)
    return drawn


def _safe(text: str, longest: int = 60) -> str:
    """Escape a label, since plotly takes some markup in labels."""
    return escape_markup(safe_line(text, longest), 2 * longest)


def _ordered(trace: TraceData, devices: Iterable[int]) -> list[int]:
    return sorted(devices, key=lambda id: palette.order(trace.devices[id].name))


def _devices(trace: TraceData, theme: Theme) -> Figure:
    """Draw the time of ops by device and phase, with the share of each."""
    device, phase, duration = trace.ops.ints("device"), trace.ops.ints("phase"), durations(trace)
    ids = _ordered(trace, {id for id in device.tolist() if id >= 0})
    total = max(int(duration.sum()), 1)
    labels = [_lane(trace, id, int((device == id).sum()), int(duration[device == id].sum()) / total) for id in ids]
    bars = []
    for name, opacity in zip(PHASES, (0.65, 0.85, 1.0, 0.4), strict=True):
        chosen = [(phase == trace.string_id(name)) & (device == id) for id in ids]
        if any(duration[ops].any() for ops in chosen):
            bar = _times(labels, chosen, duration, sentence(PHASE_NAMES[name]), _marker(trace, ids, theme))
            bars.append(bar | {"opacity": opacity})
    return _stacked(bars, sentence("figure.devices"), theme, 52 * max(len(ids), 1))


def _dtypes(trace: TraceData, theme: Theme) -> Figure:
    """Draw the time of ops by the dtype of what they gave, in the colours of their devices."""
    outputs, device, duration = trace.ops.lists("outputs"), trace.ops.ints("device"), durations(trace)
    gave, ran = outputs.lengths > 0, device >= 0
    given = np.full(len(trace.ops), -1, dtype=np.int64)
    given[gave] = trace.tensors.ints("dtype")[outputs.flat[outputs.offsets[:-1][gave]]]
    dtypes = sorted(set(given[gave & ran].tolist()), key=lambda dtype: -int(duration[ran & (given == dtype)].sum()))
    bars = []
    for id in _ordered(trace, set(device[gave & ran].tolist())):
        chosen = [(device == id) & (given == dtype) for dtype in dtypes]
        labels, marker = (_safe(trace.strings[dtype]) for dtype in dtypes), _marker(trace, [id] * len(dtypes), theme)
        bars.append(_times(labels, chosen, duration, _safe(trace.devices[id]), marker))
    return _stacked(bars, sentence("figure.dtypes"), theme, 36 * max(len(dtypes), 2))


def _times(labels: Iterable[str], chosen: Iterable[Mask], duration: Whole, name: str, marker: _Part) -> _Part:
    """Make a bar of the time that ops took."""
    spent = [(int(duration[ops].sum()), int(ops.sum())) for ops in chosen]
    words = [sentence("figure.phase", phase=name, time=time, count=count) for time, count in spent]
    lengths = [time / 1e6 for time, _ in spent]
    bar = {"type": "bar", "orientation": "h", "y": list(labels), "x": lengths, "name": name, "marker": marker}
    return bar | {"hovertext": words, "hoverinfo": "text"}


def _stacked(bars: Sequence[Any], title: str, theme: Theme, height: int) -> Figure:
    axes = {"xaxis": {"title": "ms"}, "yaxis": {"autorange": "reversed", "ticksuffix": "  "}}
    return _canvas(bars, title, theme, barmode="stack", height=120 + height, **axes)


def _lane(trace: TraceData, id: int, ops: int, share: float) -> str:
    device = trace.devices[id]
    simulated = sentence("figure.simulated") if device.simulated else ""
    return f"<b>{_safe(device.name)}</b>{simulated}<br>{sentence('figure.lane', count=ops, share=f'{share:.0%}')}"


def _marker(trace: TraceData, ids: Sequence[int], theme: Theme) -> dict[str, Any]:
    shades = [palette.shade(trace.devices[id].name, theme) for id in ids]
    pattern = {
        "shape": [_PATTERN[shade.hatch] for shade in shades],
        "fgcolor": [shade.ink for shade in shades],
        "fgopacity": 0.35,
    }
    return {"color": [shade.fill for shade in shades], "pattern": pattern, "line": {"width": 0}}


FIGURES: Final[dict[str, Callable[[TraceData, Theme], Any]]] = {
    "devices": _devices,
    "dtypes": _dtypes,
}
