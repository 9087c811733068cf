"""device-comparison: `x.device == "cpu"` is never true, as a torch.device is no string; the branch it guards is dead.

Many objects keep their device as a string, and there the comparison is right. So only what is known to answer with a
torch.device is reported: a tensor, or an object whose property gives a tensor's.

    if x.device == "cuda": x = x.half()             # bad: never true
    if x.device.type == "cuda": x = x.half()        # good
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from types import FunctionType

from devtrace.costs.uses import matches
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Finding, Site
from devtrace.diagnosis.ledger import Tally
from devtrace.source import kinds
from devtrace.source.matching import called_name, match_code, nodes_of, operands, owner_of, same_code
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import MISSING, Scope, class_dict, evaluate, returned_by_property
from devtrace.source.vocabulary import MAKES
from devtrace.trace.ids import SiteId
from devtrace.words.catalogue import sentence


def compared_with_a_string(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """Find the comparisons in functions of the user's that ran."""
    moment, functions = FailingMoment(queries), defaultdict[tuple[str, int], list[SourceNode]](list)
    for ran in map(queries.own_node, map(SiteId, range(len(queries.trace.sites)))):
        functions[ran.code.site.file + ran.code.site.cell_id, getattr(ran.function, "lineno", 0)].append(ran)
    for nodes in functions.values():
        code, source, function = nodes[0].code, nodes[0].source, nodes[0].function
        for node in nodes_of(ast.Compare, function or source.tree):
            owner, device = _compared(node) or (None, "")
            if owner is None or source.function(node) is not function:
                continue
            is_operand = any(same_code(owner, operand) for other in nodes for operand in _operands(other.node))
            if is_operand or any(_answers(evaluate(owner, scope)) for scope in _scopes(moment, code.site)):
                yield _finding(code, node, owner, device)


def _compared(node: ast.Compare) -> tuple[ast.expr, str] | None:
    """Return `x` and `"cpu"` of `x.device == "cpu"`."""
    found = matches(node, "$x.device == $name", "$x.device != $name", "$name == $x.device", "$name != $x.device")
    named = getattr(found["name"], "value", None) if found is not None else None
    return (found["x"], str(named)) if found is not None and kinds.device_named_by(named) else None


def _operands(node: ast.AST) -> list[ast.expr]:
    """Return what an op takes as a tensor; not the owner of a method: `self.norm(x)` runs a layer of `self`."""
    return [each for each in operands(node) if each is not owner_of(node)] if called_name(node) not in MAKES else []


def _scopes(moment: FailingMoment, site: Site) -> Iterator[Scope]:
    """Yield a function's variables that are still there: of frames that run it, of a cell, of its class's objects."""
    frames = [frame for frame in moment.frames if frame.f_code.co_filename == site.file]
    yield from (Scope.of(frame) for frame in frames if frame.f_code.co_qualname == site.function)
    names, (class_name, _, method) = moment.queries.snapshot.objects.names, site.function.rpartition(".")
    if names is not None and not site.function:
        yield Scope({}, names)
    for value in moment.walk.objects if class_name else ():
        if type(value).__qualname__ == class_name:
            function = class_dict(type(value)).get(method)
            own = function.__code__.co_varnames[:1] if type(function) is FunctionType else ()
            yield Scope(dict.fromkeys(own, value), {})


def _answers(value: object) -> bool:
    """Return whether `.device` of a value is known to be a torch.device."""
    if value is MISSING or is_tensor(value):
        return value is not MISSING
    returned = returned_by_property(value, "device")
    found = match_code("$tensor.device", returned[0]) if returned is not None else None
    if returned is None or found is None:
        return False
    is_first_parameter = match_code("next($module.parameters())", found["tensor"]) is not None
    return is_first_parameter or is_tensor(evaluate(found["tensor"], returned[1]))


def _finding(code: Code, node: ast.Compare, owner: ast.expr, device: str) -> Finding:
    is_negated, has_index, x = isinstance(node.ops[0], ast.NotEq), ":" in device, code.text(owner)
    own = f"str({x}.device)" if has_index else f"{x}.device.type"
    new = f'{own} {"!=" if is_negated else "=="} "{device}"'
    edit = code.replaced(node, new)
    return Finding(
        rule="device-comparison",
        severity="warning",
        site=code.site_of(node),
        message=sentence("device-comparison.always" if is_negated else "device-comparison.never", code=code.text(node)),
        help=sentence("device-comparison.text" if has_index else "device-comparison.type", code=new),
        edits=(edit,) if edit is not None else (),
    )
