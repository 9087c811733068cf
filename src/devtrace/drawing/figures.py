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
    """Return the plotly Figure of a kind: "devices" or "dtypes"."""
    if kind not in FIGURES:
        raise UsageError.of("figure-unknown", kind=repr(safe_line(kind, 40)), kinds=[repr(name) for name in FIGURES])
    return FIGURES[kind](trace, theme)


def _canvas(traces: Sequence[Any], title: str, theme: Theme, **layout: Any) -> Figure:
    canvas = Figure(list(traces))
    canvas.update_layout(
        template="plotly_dark" if theme == "dark" else "plotly_white",
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 15}},
        font={"size": 12},
        margin={"l": 10, "r": 20, "t": 60, "b": 40},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right", "traceorder": "normal"},
        bargap=0.35,
        hoverlabel={"align": "left"},
    )
    canvas.update_layout(**layout)
    if not traces:
        canvas.add_annotation(text=sentence("figure.nothing"), showarrow=False, font={"size": 14})
        canvas.update_xaxes(visible=False)
        canvas.update_yaxes(visible=False)
    return canvas


def _safe(text: str, longest: int = 60) -> str:
    """Escape a label, since plotly takes some markup in labels."""
    return escape_markup(safe_line(text, longest), 2 * longest)


def _in_palette_order(trace: TraceData, devices: Iterable[int]) -> list[int]:
    return sorted(devices, key=lambda id: palette.order(trace.devices[id].name))


def _devices(trace: TraceData, theme: Theme) -> Figure:
    """Draw the time of ops by device and phase, with the share of each."""
    device, phase, duration = trace.ops.ints("device"), trace.ops.ints("phase"), durations(trace)
    ids = _in_palette_order(trace, {id for id in device.tolist() if id >= 0})
    total = max(int(duration.sum()), 1)
    labels = [_label(trace, id, int((device == id).sum()), int(duration[device == id].sum()) / total) for id in ids]
    bars = []
    for name, opacity in zip(PHASES, (0.65, 0.85, 1.0, 0.4), strict=True):
        masks = [(phase == trace.string_id(name)) & (device == id) for id in ids]
        if any(duration[ops].any() for ops in masks):
            bar = _time_bar(labels, masks, duration, sentence(PHASE_NAMES[name]), _marker(trace, ids, theme))
            bars.append(bar | {"opacity": opacity})
    return _stacked_bars(bars, sentence("figure.devices"), theme, 52 * max(len(ids), 1))


def _dtypes(trace: TraceData, theme: Theme) -> Figure:
    """Draw the time of ops by the dtype of their first output, in the colours of their devices."""
    outputs, device, duration = trace.ops.lists("outputs"), trace.ops.ints("device"), durations(trace)
    has_output, has_device = outputs.lengths > 0, device >= 0
    dtype_of_op = np.full(len(trace.ops), -1, dtype=np.int64)
    dtype_of_op[has_output] = trace.tensors.ints("dtype")[outputs.flat[outputs.offsets[:-1][has_output]]]
    present = set(dtype_of_op[has_output & has_device].tolist())
    dtypes = sorted(present, key=lambda dtype: -int(duration[has_device & (dtype_of_op == dtype)].sum()))
    bars = []
    for id in _in_palette_order(trace, set(device[has_output & has_device].tolist())):
        masks = [(device == id) & (dtype_of_op == dtype) for dtype in dtypes]
        labels, marker = (_safe(trace.strings[dtype]) for dtype in dtypes), _marker(trace, [id] * len(dtypes), theme)
        bars.append(_time_bar(labels, masks, duration, _safe(trace.devices[id]), marker))
    return _stacked_bars(bars, sentence("figure.dtypes"), theme, 36 * max(len(dtypes), 2))


def _time_bar(labels: Iterable[str], masks: Iterable[Mask], duration: Whole, name: str, marker: _Part) -> _Part:
    """Make a bar of the time that ops took."""
    spent = [(int(duration[ops].sum()), int(ops.sum())) for ops in masks]
    words = [sentence("figure.phase", phase=name, time=time, count=count) for time, count in spent]
    lengths = [time / 1e6 for time, _ in spent]
    bar = {"type": "bar", "orientation": "h", "y": list(labels), "x": lengths, "name": name, "marker": marker}
    return bar | {"hovertext": words, "hoverinfo": "text"}


def _stacked_bars(bars: Sequence[Any], title: str, theme: Theme, height: int) -> Figure:
    axes = {"xaxis": {"title": "ms"}, "yaxis": {"autorange": "reversed", "ticksuffix": "  "}}
    return _canvas(bars, title, theme, barmode="stack", height=120 + height, **axes)


def _label(trace: TraceData, id: int, ops: int, share: float) -> str:
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
