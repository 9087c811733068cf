"""device-refused: torch was asked for a device that is not there, or that this process or tensor cannot have.

model.to("cuda:1")                          # bad where there is one device
torch.load("best.pt", map_location="cpu")   # good where there is none
"""

import ast
import re
from typing import Any, Final

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.torchs_sentences import REFUSALS
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Edit, Finding, Line
from devtrace.source.matching import called_name, calls_in
from devtrace.source.safe_values import evaluate
from devtrace.source.vocabulary import BY_NUMBER
from devtrace.words.catalogue import sentence

Asked = tuple[str, tuple[Line, ...], tuple[Edit, ...]]
NOBODY: Final[Asked] = "", (), ()


def device_refused(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    matches = ((key, re.search(pattern, text, re.IGNORECASE | re.MULTILINE)) for key, pattern in REFUSALS.items())
    key, found = next(((key, found) for key, found in matches if found), ("", None))
    if found is None:
        return None
    names = [each.lower() for each in found.groups() if each]
    if key == "mixed":
        paths = [paths[0] for row in queries.inputs(op) if (paths := snapshot.names(row))]
        names = [f"`{path.text}`" for path in paths if type(path.last.value).__name__ != "DTensor"]
    there = access_paths.accelerators() or [HOST]
    device = ":".join(names)
    numbers = range(len(snapshot.frames)) if key in ("absent", "file") else ()
    frames = [each for number in numbers if (each := FailingFrame.of(snapshot, number, there[0]))]
    asked = (_asked(each, device, there) if key == "absent" else _mapped(each) for each in frames)
    found_device, lines, edits = next((each for each in asked if each is not None), NOBODY)
    device = found_device or device
    values: dict[str, Any] = {"device": device, "names": names, "there": there, "count": len(there)}
    return Finding(
        rule="device-refused",
        severity="error",
        devices=tuple(dict.fromkeys(queries.device(row) for row in queries.inputs(op))),
        site=queries.site(queries.trace.ops.number("site", op)),
        op=op,
        message=sentence(f"device-refused.{key}{'' if device else '-unknown'}", plain=len(names), **values),
        help=edits[0].after.strip() if edits else sentence(f"device-refused.{key}-help"),
        edits=edits,
        ops=(op,),
        lines=lines,
    )


def _asked(frame: FailingFrame, kind: str, there: list[str]) -> Asked | None:
    """Return the device that a line asks for and is not there, who says so, and how to name the first that is."""
    for node in ast.walk(frame.expression):
        device = _device(frame, node)
        if not device or device in there or not (device.partition(":")[0] == kind if kind else ":" in device):
            continue
        bound = frame.bindings(frame.code.text(node))[-1:]
        sites = [frame.snapshot.queries.site_in(frame.source, each, frame.code.site) for each in bound]
        named = (each for each in ast.walk((*bound, node)[0]) if type(each) is ast.Constant)
        edits = (
            frame.code.replaced(each, f'"{there[0]}"' if type(each.value) is str else "0")
            for each in named
            if _device(frame, each) == device
        )
        lines = tuple(Line(sentence("label.created"), site) for site in sites)
        return device, lines, tuple(edit for edit in edits if edit is not None)[:1]
    return None


def _device(frame: FailingFrame, node: ast.AST) -> str:
    """Return the device that a literal or a name stands for, a number too in `.cuda(1)`; empty for none."""
    value = node.value if type(node) is ast.Constant else evaluate(node, frame.scope())
    if type(value) is int:
        call = frame.source.parent(node)
        return f"cuda:{value}" if call is not None and called_name(call) in BY_NUMBER else ""
    return access_paths.device_named_by(value)


def _mapped(frame: FailingFrame) -> Asked | None:
    """Let the `torch.load` of a line bring what it reads to the CPU, from where `load_state_dict` copies it."""
    call = next(calls_in(frame.source_node.node), None)
    if call is None or called_name(call) != "load" or {None, "map_location"} & {each.arg for each in call.keywords}:
        return None
    edit = frame.code.replaced(call, frame.code.with_argument(call, 'map_location="cpu"'))
    return None if edit is None else ("", (), (edit,))
