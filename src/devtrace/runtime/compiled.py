"""Numbers of the CPU in what is compiled with CUDA graphs: whoever listens is told while the op that takes one runs.

    model = torch.compile(model, mode="reduce-overhead")     # whose forward has `x * self.scale`, a tensor of the CPU

A kernel takes such a number as it is, a CUDA graph does not: torch copies it to the device before the graph, which it
cuts there, or it makes no graph at all. What runs here is not compiled; the frame of torch's wrapper is there.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, Literal, NamedTuple

from devtrace.runtime.tracebacks import outward

Fate = Literal["cut", "skipped"]
"""What becomes of the graph."""


class CompiledRegion(NamedTuple):
    """Code that runs as one compiled call; `outside` are the functions, by file and name, from which it was called."""

    fate: Fate
    outside: frozenset[tuple[str, str]]


listeners: Final[list[Callable[[CompiledRegion], None]]] = []
_WRAPPER: Final = "compile_wrapper"
_regions: Final[dict[tuple[Fate, frozenset[CodeType]], CompiledRegion]] = {}


def takes_a_number() -> None:
    """Tell of the op that runs, if it is in a region whose compiler was asked for CUDA graphs."""
    region = _region(sys._getframe(1)) if listeners and "torch._dynamo" in sys.modules else None
    if region is not None:
        for listener in listeners:
            listener(region)


def _region(frame: FrameType | None) -> CompiledRegion | None:
    around = outward(frame)
    wrapper = next(filter(_is_wrapper, around), None)
    fate = _fate(wrapper.f_locals.get("self")) if wrapper is not None else None
    if fate is None:
        return None
    key = fate, frozenset(each.f_code for each in around)
    if key not in _regions:
        _regions[key] = CompiledRegion(fate, frozenset((code.co_filename, code.co_qualname) for code in key[1]))
    return _regions[key]


def _is_wrapper(frame: FrameType) -> bool:
    return frame.f_code.co_name == _WRAPPER and frame.f_globals.get("__name__") == "torch._dynamo.eval_frame"


def _fate(context: Any) -> Fate | None:
    """Ask a compiler's settings: those of inductor, whose graphs are cut where it parts them, or the plain backend."""
    settings = getattr(context, "compiler_config", None) or {}
    if settings.get("triton.cudagraphs"):
        return "cut" if settings.get("graph_partition") else "skipped"
    backend = getattr(context, "callback", None)
    while (inner := getattr(backend, "_torchdynamo_orig_backend", None)) is not None:
        backend = inner
    return "skipped" if getattr(backend, "compiler_name", "") == "cudagraphs" else None
