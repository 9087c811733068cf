"""generator-mismatch: a random op was given a generator of another device.

torch.rand(4, device="cuda", generator=torch.Generator())           # bad
torch.rand(4, device="cuda", generator=torch.Generator("cuda"))     # good
"""

import ast
import re
from collections.abc import Sequence
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.generators import GeneratorCall, fix_generator
from devtrace.diagnosis.fixes.register_on_module import assignments
from devtrace.diagnosis.slugs import Certainty
from devtrace.source.matching import called_name, calls_in, nodes_of, variable
from devtrace.words.catalogue import sentence

_IS_GENERATOR: Final = re.compile(r"Expected an? '([\w:]+)' (?:device type|generator device) .*found '([\w:]+)'")


def generator_mismatch(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    error = _IS_GENERATOR.search(text)
    if error is None:
        return None
    expected, odd = (_full_device(queries, kind) for kind in error.groups())
    frame = FailingFrame.of(snapshot, 0, expected)
    paths = _generators_on(snapshot, odd)
    default = _default_device(frame) if frame is not None and not paths else None
    made = _generator_call(queries, snapshot, paths[0]) if paths else default
    fix = fix_generator(frame, made, paths[0] if paths else None) if frame is not None else None
    fix = fix or Fix(sentence("generator-device.advice"))
    names = tuple(path.text for path in paths) or _names_in_a_loader(frame)
    born = made.site if made is not None else None
    by = "default" if default is not None else "message"
    certainty: Certainty = "seen" if paths and queries.evidence.saw_ops else "inferred"
    return Finding(
        rule="generator-mismatch",
        severity="error",
        cause="default-device" if default is not None else "generator-device",
        devices=(expected, odd),
        site=queries.site(queries.op_site(op)),
        op=op,
        culprit=Culprit(names[0], names, odd, (), "", born, None, (born,) if born else (), certainty),
        message=sentence(f"generator-mismatch.{by}", name=names[0], expected=expected, odd=odd),
        help=fix.help,
        edits=fix.edits,
        ops=(op,),
    )


def _full_device(queries: TraceQueries, kind: str) -> str:
    """Return `cuda` as the device that the trace has."""
    known = (name for name in queries.device_names if name.split(":")[0] == kind)
    return next(known, kind if ":" in kind or kind == HOST else f"{kind}:0")


def _generators_on(snapshot: FailureSnapshot, odd: str) -> list[AccessPath]:
    """Return the names of generators on the odd device that the failing frames lead to."""
    generators = [value for value in snapshot.walk.objects.values() if access_paths.is_generator(value)]
    wrong = [value for value in generators if access_paths.device_named_by(value).split(":")[0] == odd.split(":")[0]]
    return sorted((name for value in wrong for name in snapshot.walk.names(value)), key=lambda name: name.rank)


def _names_in_a_loader(frame: FailingFrame | None) -> tuple[str, ...]:
    """Return names for the generator that a DataLoader makes for itself."""
    for node in nodes_of(ast.For, frame.source_node.statement) if frame is not None else ():
        if loader := variable(node.iter):
            return f"{loader}.sampler.generator", f"{loader}.generator", "generator"
    return ("generator",)


def _generator_call(queries: TraceQueries, snapshot: FailureSnapshot, name: AccessPath) -> GeneratorCall | None:
    """Return the `torch.Generator(...)` that is assigned to the last step of a name."""
    owner, leaf = name.last.owner, name.last.text.lstrip(".")
    bound: Sequence[tuple[Code, ast.stmt]]
    if owner is None:
        frame = FailingFrame.of(snapshot, name.frame, HOST)
        bound = [(frame.code, statement) for statement in reversed(frame.bindings(leaf))] if frame is not None else []
    else:
        bound = list(reversed(list(assignments(queries, owner, leaf))))
    calls = ((code, call) for code, statement in bound for call in calls_in(statement))
    return next((GeneratorCall(code, call) for code, call in calls if called_name(call) == "Generator"), None)


def _default_device(frame: FailingFrame) -> GeneratorCall | None:
    """Return the call that sets a default device: in the frame's function, else anywhere in its file."""
    for root in (frame.body, frame.source_node.source.tree):
        for call in calls_in(root):
            if called_name(call) in ("set_default_device", "set_default_tensor_type"):
                return GeneratorCall(frame.code, call)
    items = (item.context_expr for node in nodes_of(ast.With, frame.source_node.source.tree) for item in node.items)
    calls = (each for each in items if isinstance(each, ast.Call) and called_name(each) == "device")
    return next((GeneratorCall(frame.code, call) for call in calls), None)
