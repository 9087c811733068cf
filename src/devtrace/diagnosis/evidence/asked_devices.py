"""The device that a line asks for, and the code that names it: here, in a caller, in a `with`, as the default."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.source.flow import parameters
from devtrace.source.matching import called_name, calls_in, nodes_of, variable
from devtrace.source.safe_values import MISSING, evaluate, plain
from devtrace.source.vocabulary import DEVICE_LISTS, full_name, takes_number

Refused = Callable[[str], bool]
Named = Callable[[FailingFrame, ast.AST], Iterable[str]]
MOST_NUMBERS: Final = 64


class AskedDevice(NamedTuple):
    """A device that code asks for: a literal, a variable, or what computes it."""

    device: str
    frame: FailingFrame
    node: ast.AST

    @property
    def is_handed_in(self) -> bool:
        """Return whether the code is a parameter of its function."""
        name = variable(self.node)
        return bool(name) and name in parameters(self.frame.body) and not self.frame.bindings(name)

    def is_named_by(self, node: ast.AST) -> bool:
        return self.device in (*devices_named(self.frame, node), plain(node, self.frame.scope()))


def asked_device(frames: Sequence[FailingFrame], is_refused: Refused, named: Named | None = None) -> AskedDevice | None:
    """Return the refused device of a line, in the outermost frame that passes it on; `frames` begin innermost.

    `named` reads other names in code than devices.
    """
    named = named or devices_named
    found = None
    for frame in frames:
        known = found.device if found is not None else ""
        asked = (each for code in _head(frame) for each in _asked(frame, code, is_refused, named))
        found = next((each for each in asked if known in ("", each.device)), found)
        if found is not None and not found.is_handed_in:
            break
    return found or next(_around(frames, is_refused, named), None)


def devices_named(frame: FailingFrame, node: ast.AST) -> list[str]:
    """Return the devices that code names: a text, a `torch.device`, a number in a device position, a list.

    Of a `functools.partial`: its arguments.
    """
    computed = plain(node, frame.scope())
    value: Any = evaluate(node, frame.scope()) if computed is None else computed
    if value is MISSING:
        value = _numbers(node, frame)
    if type(value) is partial:
        value = [*value.args, *value.keywords.values()]
    values = value if type(value) in (list, tuple) else [value]
    if all(type(each) is int for each in values):
        kind = _kind_of_number(frame, node)
        return [f"{kind}:{each}" for each in values if kind]
    return [device for each in values if (device := access_paths.device_named_by(each))]


def _numbers(node: ast.AST, frame: FailingFrame) -> list[int]:
    """Return the numbers of `list(range(4))` or `[*range(4)]`."""
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]) | ast.List(elts=[ast.Starred(value=inner)]):
            given = inner.args if isinstance(inner, ast.Call) and called_name(inner) == "range" else []
            ends = [end for each in given if type(end := plain(each, frame.scope())) is int]
            return [*range(*ends)[:MOST_NUMBERS]] if ends and len(ends) == len(given) else []
    return []


def accelerator() -> str:
    """Return the kind of device that a number alone stands for."""
    return next(iter(access_paths.accelerators()), "cuda").partition(":")[0]


def _head(frame: FailingFrame) -> list[ast.AST]:
    """Return the running code of a frame; of `with torch.cuda.device(7):` without the body."""
    return getattr(frame.expression, "items", None) or [frame.expression]


def _asked(frame: FailingFrame, code: ast.AST, is_refused: Refused, named: Named) -> Iterator[AskedDevice]:
    mapped_from = {key for each in nodes_of(ast.Dict, code) for key in each.keys}
    for node in ast.walk(code):
        if node not in mapped_from:
            yield from (AskedDevice(each, frame, node) for each in named(frame, node) if is_refused(each))


def _around(frames: Sequence[FailingFrame], is_refused: Refused, named: Named) -> Iterator[AskedDevice]:
    """Yield the devices of `with torch.device(...)` around the frames' lines, then those set as the default."""
    for frame in frames:
        for outer in frame.source.ancestors(frame.source_node.node):
            for item in getattr(outer, "items", ()):
                is_known = evaluate(item.context_expr, frame.scope()) is not MISSING
                if is_known or called_name(item.context_expr) == "device":
                    yield from _asked(frame, item, is_refused, named)
    for frame in frames:
        for call in calls_in(frame.source.tree):
            if called_name(call) == "set_default_device":
                yield from _asked(frame, call, is_refused, named)


def _kind_of_number(frame: FailingFrame, node: ast.AST) -> str:
    """Return the kind of device for a number in this position; empty if it is no device."""
    parent = frame.source.parent(node)
    match parent:
        case ast.keyword(arg=str() as word):
            return accelerator() if word in ("device", "output_device", *DEVICE_LISTS) else ""
        case ast.List() | ast.Tuple():
            return _kind_of_number(frame, parent)
        case ast.Call(args=[_, second, *_]) if second is node:
            kind = plain(parent.args[0], frame.scope()) if called_name(parent) == "device" else None
            return kind if isinstance(kind, str) else accelerator() if called_name(parent) in DEVICE_LISTS else ""
        case ast.Call(args=[first, *_]) if first is node:
            full = full_name(parent.func, frame.source, frame.variables)
            return accelerator() if takes_number(called_name(parent), full) else ""
    return ""
