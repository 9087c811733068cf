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
    moment, by_function = FailingMoment(queries), defaultdict[tuple[str, int], list[SourceNode]](list)
    for place in map(queries.own_node, map(SiteId, range(len(queries.trace.sites)))):
        by_function[place.code.site.file + place.code.site.cell_id, getattr(place.function, "lineno", 0)].append(place)
    for places in by_function.values():
        code, source, function = places[0].code, places[0].source, places[0].function
        for node in nodes_of(ast.Compare, function or source.tree):
            owner, device = _owner_and_device(node) or (None, "")
            if owner is None or source.function(node) is not function:
                continue
            is_operand = any(same_code(owner, part) for place in places for part in _tensor_operands(place.node))
            if is_operand or any(_has_torch_device(evaluate(owner, scope)) for scope in _scopes(moment, code.site)):
                yield _finding(code, node, owner, device)


def _owner_and_device(node: ast.Compare) -> tuple[ast.expr, str] | None:
    """Return `x` and `"cpu"` of `x.device == "cpu"`."""
    holes = matches(node, "$x.device == $name", "$x.device != $name", "$name == $x.device", "$name != $x.device")
    name = getattr(holes["name"], "value", None) if holes is not None else None
    return (holes["x"], str(name)) if holes is not None and kinds.device_named_by(name) else None


def _tensor_operands(node: ast.AST) -> list[ast.expr]:
    """Return what an op takes as a tensor: `x` of `self.norm(x)`, which runs a layer of `self`; none of a factory."""
    return [part for part in operands(node) if part is not owner_of(node)] if called_name(node) not in MAKES else []


def _scopes(moment: FailingMoment, site: Site) -> Iterator[Scope]:
    """Yield variables that a function may see: of frames that run it, of the notebook, or `self` of its class."""
    frames = [frame for frame in moment.frames if frame.f_code.co_filename == site.file]
    yield from (Scope.of(frame) for frame in frames if frame.f_code.co_qualname == site.function)
    names, (class_name, _, method) = moment.queries.snapshot.objects.names, site.function.rpartition(".")
    if names is not None and not site.function:
        yield Scope({}, names)
    for value in moment.walk.objects if class_name else ():
        if type(value).__qualname__ == class_name:
            function = class_dict(type(value)).get(method)
            self_name = function.__code__.co_varnames[:1] if type(function) is FunctionType else ()
            yield Scope(dict.fromkeys(self_name, value), {})


def _has_torch_device(value: object) -> bool:
    """Return whether `.device` of a value is known to be a torch.device."""
    if value is MISSING or is_tensor(value):
        return value is not MISSING
    code, scope = returned_by_property(value, "device") or (None, None)
    holes = match_code("$tensor.device", code)
    if scope is None or holes is None:
        return False
    is_first_parameter = match_code("next($module.parameters())", holes["tensor"]) is not None
    return is_first_parameter or is_tensor(evaluate(holes["tensor"], scope))


def _finding(code: Code, node: ast.Compare, owner: ast.expr, device: str) -> Finding:
    is_negated, has_index, x = isinstance(node.ops[0], ast.NotEq), ":" in device, code.text(owner)
    text = f"str({x}.device)" if has_index else f"{x}.device.type"
    new = f'{text} {"!=" if is_negated else "=="} "{device}"'
    edit = code.replaced(node, new)
    return Finding(
        rule="device-comparison",
        severity="warning",
        site=code.site_of(node),
        message=sentence("device-comparison.always" if is_negated else "device-comparison.never", code=code.text(node)),
        help=sentence("device-comparison.text" if has_index else "device-comparison.type", code=new),
        edits=(edit,) if edit is not None else (),
    )
