"""generator-mismatch: a random op was given a generator of another device."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding, Site
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.register_on_module import assignments
from devtrace.diagnosis.slugs import CauseSlug
from devtrace.source.matching import called_name

_SAYS_GENERATOR: Final = re.compile(r"Expected an? '([\w:]+)' (?:device type|generator device) .*found '([\w:]+)'")


@dataclass(frozen=True)
class Made:
    """Where a generator (or what stands for it) comes from: its call, in its code."""

    code: Code
    call: ast.Call

    @property
    def site(self) -> Site:
        source = self.code.source
        statement = source.statement(self.call) or self.call
        span = source.span(statement)
        site = self.code.site
        return Site(site.file, *span, site.function, self.code.text(statement), site.cell, site.cell_id)


def generator_mismatch(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    said = _SAYS_GENERATOR.search(text)
    if said is None:
        return None
    wanted, found = (_full(queries, kind) for kind in said.groups())
    stand = FailingFrame.of(snapshot, 0, wanted)
    held = _names(snapshot, found)
    default = None if held or stand is None else _default_device(stand)
    made = _made(queries, snapshot, held[0]) if held else default
    mend = _fix(stand, made, held[0] if held else None)
    cause: CauseSlug = "default-device" if default is not None else "generator-device"
    spoken = tuple(name.text for name in held) or _of_loader(stand)
    born = made.site if made is not None else None
    return Finding(
        rule="generator-mismatch",
        severity="error",
        cause=cause,
        devices=(wanted, found),
        site=queries.site(queries.trace.ops.number("site", op)),
        op=op,
        culprit=Culprit(
            spoken[0], spoken, found, (), "", born, None, (born,) if born else (), "seen" if held else "inferred"
        ),
        message=_message(spoken[0], wanted, found, default is not None),
        help=mend.help,
        edits=mend.edits,
        ops=(op,),
    )


def _full(queries: TraceQueries, kind: str) -> str:
    """`cuda` as the device that the trace has."""
    return next(
        (name for name in queries.device_names if name.split(":")[0] == kind),
        kind if ":" in kind or kind == HOST else f"{kind}:0",
    )


def _message(name: str, wanted: str, found: str, default: bool) -> str:
    first = f"{name} is a generator on {found}; the random numbers are to be made on {wanted}."
    if default:
        return f"{first} A default device is set, and torch makes this generator on {found} all the same."
    return f"{first} A generator serves one device only."


def _names(snapshot: FailureSnapshot, found: str) -> list[AccessPath]:
    """The generators of the wrong device that the failing frames lead to."""
    generators = [value for value in snapshot.walk.objects.values() if access_paths.is_generator(value)]
    wrong = [value for value in generators if access_paths.device_named_by(value).split(":")[0] == found.split(":")[0]]
    return sorted((name for value in wrong for name in snapshot.walk.names(value)), key=lambda name: name.rank)


def _of_loader(stand: FailingFrame | None) -> tuple[str, ...]:
    """What to call the generator that a DataLoader makes for itself."""
    for node in ast.walk(stand.source_node.statement) if stand is not None else ():
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name):
            loader = node.iter.id
            return f"{loader}.sampler.generator", f"{loader}.generator", "generator"
    return ("generator",)


def _made(queries: TraceQueries, snapshot: FailureSnapshot, name: AccessPath) -> Made | None:
    """Where `torch.Generator(...)` is assigned to what a name ends in."""
    owner, leaf = name.last.owner, name.last.text.lstrip(".")
    if owner is None:
        stand = FailingFrame.of(snapshot, name.frame, HOST)
        bound = stand.bindings(leaf) if stand is not None else []
        calls = [
            Made(stand.code, call) for s in bound if stand is not None and (call := _generator_call(s)) is not None
        ]
        return calls[-1] if calls else None
    for code, statement in assignments(queries, owner, leaf):
        call = _generator_call(statement)
        if call is not None:
            return Made(code, call)
    return None


def _generator_call(node: ast.AST) -> ast.Call | None:
    calls = (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return next((call for call in calls if called_name(call) == "Generator"), None)


def _default_device(stand: FailingFrame) -> Made | None:
    """Where the code sets a default device: in the frame's function, else anywhere in its file."""
    for root in (stand.body, stand.source_node.source.tree):
        for node in ast.walk(root):
            if isinstance(node, ast.Call) and called_name(node) in (
                "set_default_device",
                "set_default_tensor_type",
            ):
                return Made(stand.code, node)
    for node in ast.walk(stand.source_node.source.tree):
        if isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.context_expr, ast.Call) and called_name(item.context_expr) == "device":
                    return Made(stand.code, item.context_expr)
    return None


def _fix(stand: FailingFrame | None, made: Made | None, name: AccessPath | None) -> Fix:
    return (
        (stand and made and name and _make_there(stand, made, name))
        or (stand and _draw_then_move(stand))
        or (stand and _give_the_loader_one(stand))
        or Fix("make the generator on the device of the numbers: torch.Generator(device=...)")
    )


def _make_there(stand: FailingFrame, made: Made, name: AccessPath) -> Fix | None:
    """`torch.Generator()` in the same frame becomes `torch.Generator(device)`."""
    expected_device = FailingFrame.of(stand.snapshot, name.frame, stand.expected_device)
    if expected_device is None or name.last.owner is not None or made.code.source is not expected_device.code.source:
        return None
    device = expected_device.set_up_device(made.code.source.span(made.call).line)
    if not device:
        return None
    new = f"{made.code.text(made.call.func)}({device})"
    edit = made.code.replaced(made.call, new)
    return Fix(f"make the generator there: {new}", (edit,)) if edit is not None else None


def _draw_then_move(stand: FailingFrame) -> Fix | None:
    """`torch.randn(n, generator=g, device=d)` becomes `torch.randn(n, generator=g).to(d)`."""
    for call in ast.walk(stand.source_node.node):
        if not isinstance(call, ast.Call):
            continue
        words = {word.arg: word for word in call.keywords}
        if "generator" in words and "device" in words:
            kept = [stand.code.text(part) for part in (*call.args, *call.keywords) if part is not words["device"]]
            new = f"{stand.code.text(call.func)}({', '.join(kept)}).to({stand.code.text(words['device'].value)})"
            edit = stand.code.replaced(call, new)
            if edit is not None:
                return Fix(f"draw on the generator's device, then move: {new}", (edit,))
    return None


def _give_the_loader_one(stand: FailingFrame) -> Fix | None:
    """`DataLoader(..., shuffle=True)` gets a generator of the default device."""
    for call in ast.walk(stand.body):
        if isinstance(call, ast.Call) and called_name(call) == "DataLoader":
            device = stand.set_up_device(stand.code.source.span(call).line) or "torch.get_default_device()"
            body = stand.code.text(call)[:-1].rstrip().removesuffix(",")
            new = f"{body}, generator=torch.Generator({device}))"
            edit = stand.code.replaced(call, new)
            if edit is not None:
                return Fix(f"give it a generator: generator=torch.Generator({device})", (edit,))
    return None
