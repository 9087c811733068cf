"""A function that makes a tensor, and knows no device, is given one by its caller: `causal(n, device=x.device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.fixes import devices
from devtrace.diagnosis.fixes.fix import Fix, made_at, suggested
from devtrace.source.flow import parameters
from devtrace.source.matching import called_name, calls_in, nodes_of, owner_of, variable
from devtrace.source.parsing import NamedFunction
from devtrace.source.safe_values import evaluate, is_around
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line

_PARAMETER = "device"


def hand_device_down(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Let the function make it on the device that its caller has, which costs no copy in each call."""
    site = case.queries.op_site(case.origin.op)
    found = case.queries.source_node(site)
    maker = found.function if found is not None else None
    if (
        found is None
        or not isinstance(maker, NamedFunction)
        or case.queries.of != "device"
        or case.origin.arrival != "made"
        or case.queries.package(site)
        or devices.at(case, site, found.node)
        or not (factories := _factories(found, maker))
    ):
        return
    made = [(call, found.code.with_argument(call, "device", _PARAMETER)) for call in factories]
    parameter = _with_parameter(found, maker)
    for frame in FailingFrame.all_of(case.snapshot, case.expected_device) if parameter else ():
        called = [call for call in calls_in(frame.body) if _is_of(call, maker, found, frame)]
        device = frame.device_code(frame.source.span(called[0]).line, called[0]) if called else ""
        if device:
            handed = [frame.code.with_argument(call, _PARAMETER, device) for call in called]
            calls = (frame.code.replaced(*each) for each in zip(called, handed, strict=True))
            own = found.code.all_replaced([*parameter, *made])  # one edit: its names are those of its first line
            moved = made_at(case, lambda node: origins.factory_call(node) in factories)
            help = sentence("fixed.hand-down", code=one_line(handed[0]), function=maker.name)
            yield from suggested(help, own, *calls, moved=moved)
            return


def _factories(found: SourceNode, maker: NamedFunction) -> list[ast.Call]:
    """Return the function's own calls of factories without a device, none of them inside another."""
    calls = [call for call in calls_in(maker) if origins.is_factory_without("device", call, found.source)]
    own = [call for call in calls if found.source.function(call) is maker]
    return [call for call in own if not any(call in ast.walk(other) for other in own if other is not call)]


def _with_parameter(found: SourceNode, maker: NamedFunction) -> list[tuple[ast.AST, str]]:
    """Return what gives the function's first line a `device=None`; nothing where that would have another meaning."""
    given = maker.args
    is_plain = not (maker.decorator_list or given.posonlyargs or given.vararg or given.kwarg or given.kwonlyargs)
    names = nodes_of(ast.Name, maker)
    if not is_plain or not given.args or _PARAMETER in {*parameters(maker), *(name.id for name in names)}:
        return []
    last: ast.AST = given.defaults[-1] if given.defaults else given.args[-1]
    return [(last, f"{found.code.text(last)}, {_PARAMETER}=None")]


def _is_of(call: ast.Call, maker: NamedFunction, found: SourceNode, frame: FailingFrame) -> bool:
    """Return whether a call is of the function, or of the one method of that name of the frame's own object."""
    if called_name(call) != maker.name or any(each.arg in (None, _PARAMETER) for each in call.keywords):
        return False
    source, line = found.source, found.source.span(found.node).line
    alike = [each for each in nodes_of(ast.stmt, source.tree) if getattr(each, "name", "") == maker.name]
    is_own = variable(owner_of(call)) == frame.own != "" and len(alike) == 1 and source.file == frame.source.file
    return is_own or is_around(evaluate(call.func, frame.scope()), maker.name, source.file, line)
