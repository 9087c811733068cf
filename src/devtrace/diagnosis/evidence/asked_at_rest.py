"""The line that asked a module for its device while the weights waited there, to compute elsewhere.

device = encoder.device                                  # the CPU: its hook takes it to the GPU for each call
noise = torch.rand(2, 8, device=device)                  # meets what `encoder` computes
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import AccessPath, Walk
from devtrace.diagnosis.evidence.asked_devices import MOST_STEPS, AskedDevice, giver
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.lent_modules import Hook, hook_of
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.evidence.origins import trait_argument
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.kinds import device_named_by
from devtrace.source.matching import called_name, calls_in, given_trait, nodes_of
from devtrace.source.safe_values import Scope, values


class Asked(NamedTuple):
    """`given`: the device of the call that `made` the tensor. `node`: what asked the module, perhaps elsewhere."""

    made: SourceNode
    given: ast.expr
    frame: FailingFrame | None
    code: Code
    node: ast.AST
    names: list[AccessPath]
    hook: Hook


def device_given(case: MismatchCase, made: SourceNode) -> ast.expr | None:
    """Return the device that a call was given: of `torch.zeros(n, device=d)`, `x.to(d)`."""
    return trait_argument(made, case.queries.by) or next(filter(None, map(given_trait, calls_in(made.node))), None)


def hooked(case: MismatchCase) -> Iterator[tuple[AccessPath, AccessPath, Hook]]:
    """Yield the names of the odd tensor and of what it was made of, each with a module around it that has a hook."""
    for name in (*case.names, *(name for row in case.origin.path for name in case.moment.names(row))):
        around = ((at, hook_of(module)) for at, module in reversed(name.modules()))
        yield from ((name, name.prefix(at + 1), hook) for at, hook in around if hook is not None)


def asked_at_rest(case: MismatchCase) -> Asked | None:
    made, walk = _made(case), case.moment.walk
    given = device_given(case, made) if made is not None else None
    if made is None or given is None:
        return None
    number = case.moment.frame_of(made.code.site)
    frame = FailingFrame.reading(case.moment, -1 if number is None else number, case.expected_trait)
    first = giver(AskedDevice(case.odd_trait, frame, given), given, MOST_STEPS) if frame is not None else None
    scope = frame.scope() if frame is not None else Scope({}, case.moment.namespace)
    hooks = [(each, hook) for each in walk.objects.values() if (hook := hook_of(each)) is not None and not hook.stay]
    fits = [pair for pair in hooks if pair[1].device == case.expected_trait or case.mismatch.of == "copy"]
    for code, node in filter(None, (first, (made.code, given))):
        if any(device_named_by(each.value) for each in nodes_of(ast.Constant, node)):
            return None  # it says a device itself
        asked = [each.value for each in values(node, code.source, scope)]
        for module, hook in fits:
            is_only = frame is None and len(fits) == 1 and "device" in getattr(node, "attr", called_name(node))
            if is_only or any(_leads(walk, value, module) or _leads(walk, module, value) for value in asked):
                return Asked(made, given, frame, code, node, walk.names(module), hook)
    return None


def _made(case: MismatchCase) -> SourceNode | None:
    """Return the code that made the tensor; where nobody saw that, the line that gave it its name."""
    made, frame = case.queries.op_node(case.origin.op), case.frame_of(case.name)
    if made is not None or frame is None or case.name is None:
        return made
    bound = [each for each in frame.bindings(case.name.text) if each is not frame.source_node.statement]
    return SourceNode(frame.code, bound[-1], bound[-1]) if bound else None


def _leads(walk: Walk, outer: object, inner: object) -> bool:
    """Return whether an object is on a way to another one."""
    return any(each is outer for name in walk.names(inner) for each in name.objects)
