"""generator-mismatch: a random op was given a generator of another device.

torch.rand(4, device="cuda", generator=torch.Generator())           # bad
torch.rand(4, device="cuda", generator=torch.Generator("cuda"))     # good
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.finding_parts import of_error
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import assignments
from devtrace.diagnosis.evidence.trace_queries import HOST, SourceNode, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.fixes import proof
from devtrace.diagnosis.fixes.fix import Fix, suggested
from devtrace.diagnosis.slugs import Certainty
from devtrace.source import kinds
from devtrace.source.matching import called_name, calls_in, keyword, nodes_of, variable
from devtrace.source.stand_ins import Generator
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence

_IS_GENERATOR: Final = re.compile(r"Expected an? '([\w:]+)' (?:device type|generator device) .*found '([\w:]+)'")


def generator_mismatch(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    error = _IS_GENERATOR.search(text)
    if error is None:
        return None
    expected, odd = (_full_device(queries, kind) for kind in error.groups())
    frame = FailingFrame.of(moment, 0, expected)
    generators = [value for value in moment.walk.objects if type(value) is Generator]
    wrong = [value for value in generators if kinds.device_named_by(value).split(":")[0] == odd.split(":")[0]]
    paths = sorted((name for value in wrong for name in moment.walk.names(value)), key=lambda name: name.rank)
    default = _default_device(frame) if not paths else None
    maker = _generator_call(queries, moment, paths[0]) if paths else default
    fixes = _fixes(frame, maker, next(iter(paths), None)) if frame.is_there else iter(())
    fix = next(fixes, Fix(sentence("generator-device.advice")))
    names = tuple(path.text for path in paths) or _names_in_a_loader(frame)
    born = maker.code.site_of(maker.statement) if maker is not None else None
    key = "generator-mismatch.message" if default is None else "generator-mismatch.default"
    certainty: Certainty = "seen" if paths and queries.evidence.saw_ops else "inferred"
    return Finding(
        rule="generator-mismatch",
        **of_error(queries, op),
        cause="default-device" if default is not None else "generator-device",
        devices=(expected, odd),
        culprit=Culprit(names[0], names, odd, (), "", born, None, (born,) if born else (), certainty),
        message=sentence(key, name=names[0], expected=expected, odd=odd),
        help=fix.help,
        edits=fix.edits,
    )


def _full_device(queries: TraceQueries, kind: str) -> str:
    """Return `cuda` as the device that the trace has."""
    known = (name for name in queries.device_names if name.split(":")[0] == kind)
    return next(known, kind if ":" in kind or kind == HOST else f"{kind}:0")


def _names_in_a_loader(frame: FailingFrame) -> tuple[str, ...]:
    """Return names for the generator that a DataLoader makes for itself."""
    for node in nodes_of(ast.For, frame.source_node.statement):
        if loader := variable(node.iter):
            return f"{loader}.sampler.generator", f"{loader}.generator", "generator"
    return ("generator",)


def _generator_call(queries: TraceQueries, moment: FailingMoment, name: AccessPath) -> SourceNode | None:
    """Return the `torch.Generator(...)` that is assigned to the last step of a name."""
    owner, leaf = name.last.owner, name.last.text.lstrip(".")
    setters = [(each.code, each.statement) for each in assignments(queries, owner, leaf)] if owner is not None else []
    if owner is None:
        frame = FailingFrame.of(moment, name.frame, HOST)
        setters = [(frame.code, statement) for statement in frame.bindings(leaf)]
    return next(_calls(reversed(setters), ("Generator",)), None)


def _default_device(frame: FailingFrame) -> SourceNode | None:
    """Return the call that sets a default device: in the frame's function, else anywhere in its file."""
    code, tree = frame.code, frame.source.tree
    roots = ((code, root) for root in (frame.body, tree))
    blocks = ((code, item.context_expr) for node in nodes_of(ast.With, tree) for item in node.items)
    setters = _calls(roots, ("set_default_device", "set_default_tensor_type"))
    return next(itertools.chain(setters, _calls(blocks, ("device",))), None)


def _calls(parts: Iterable[tuple[Code, ast.AST]], names: tuple[str, ...]) -> Iterator[SourceNode]:
    """Yield the calls of some functions in pieces of code."""
    for code, part in parts:
        for call in calls_in(part):
            if called_name(call) in names:
                yield SourceNode(code, call, code.source.statement(call))


def _fixes(frame: FailingFrame, maker: SourceNode | None, name: AccessPath | None) -> Iterator[Fix]:
    """Yield the fixes whose names have values at their lines.

    `maker` is the call that makes the generator, or that sets the default device which the generator follows.
    """
    at_maker = _make_on_the_device(frame, maker, name) if maker is not None and name is not None else ()
    fixes = (*at_maker, *_draw_then_move(frame), *_give_to_the_loader(frame))
    moment, failed = frame.moment, frame.moment.queries.failed
    return (fix for fix in fixes if not any(proof.unwritable(moment, edit, failed) for edit in fix.edits))


def _make_on_the_device(frame: FailingFrame, maker: SourceNode, name: AccessPath) -> Iterator[Fix]:
    """`torch.Generator()` in the same frame becomes `torch.Generator(device)`."""
    outer = FailingFrame.of(frame.moment, name.frame, frame.expected_trait)
    if name.last.owner is not None or maker.source is not outer.source:
        return
    device = outer.device_code(outer.source.span(maker.node).line)
    if device and isinstance(maker.node, ast.Call):
        new = f"{maker.code.text(maker.node.func)}({device})"
        yield from suggested(sentence("fixed.generator", code=new), maker.code.replaced(maker.node, new))


def _draw_then_move(frame: FailingFrame) -> Iterator[Fix]:
    """`torch.randn(n, generator=g, device=d)` becomes `torch.randn(n, generator=g).to(d)`."""
    text = frame.code.text
    for call in calls_in(frame.source_node.node):
        device = keyword(call, "device")
        if device is not None and keyword(call, "generator") is not None:
            kept = [text(part) for part in (*call.args, *call.keywords) if getattr(part, "arg", "") != "device"]
            new = f"{text(call.func)}({', '.join(kept)}).to({text(device)})"
            edit = frame.code.replaced(call, new)
            yield from suggested(sentence("fixed.draw", code=new), edit)


def _give_to_the_loader(frame: FailingFrame) -> Iterator[Fix]:
    """`DataLoader(..., shuffle=True)` gets a generator of the default device."""
    for call in calls_in(frame.body):
        if called_name(call) == "DataLoader":
            device = frame.device_code(frame.source.span(call).line) or "torch.get_default_device()"
            generator = f"torch.Generator({device})"
            edit = frame.code.replaced(call, frame.code.with_argument(call, "generator", generator))
            yield from suggested(sentence("fixed.give-generator", code=f"generator={generator}"), edit)
