"""device-comparison: `x.device == "cpu"` is never true, as a torch.device is no string; the branch it guards is dead.

Many objects keep their device as a string, where the comparison is right. So it is told only of what is known to
answer with a torch.device: a tensor, or an object whose property gives a tensor's.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.origins import FACTORIES
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Finding, Site
from devtrace.diagnosis.fixes.fix import called_name
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.source.reading import MISSING, Scope, evaluate, returned_by_property


def compared_with_a_string(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """The comparisons in functions of the user's that ran."""
    for at, places in _by_function(queries).items():
        source = places[0].source
        body = source.function(places[0].node) or source.tree
        for node in ast.walk(body):
            left = _device_of(node)
            if left is None or source.function(node) is not source.function(places[0].node):
                continue
            if _worked_on(left, places) or _is_known(left, queries, at):
                yield _finding(queries, Code(source, at), node, left)


RULE: Final = CostRule(
    slug="device-comparison",
    meaning='`x.device == "cpu"` is never true: a `torch.device` is no string',
    find=compared_with_a_string,
)


def _by_function(queries: TraceQueries) -> dict[Site, list[SourceNode]]:
    """Where ops ran, function by function; each by one of its sites."""
    found: dict[tuple[str, int], list[SourceNode]] = defaultdict(list)
    keys: dict[tuple[str, int], Site] = {}
    for id in range(len(queries.trace.sites)):
        place, site = queries.source_node(id) if not queries.package(id) else None, queries.site(id)
        if place is not None and site is not None:
            body = place.source.function(place.node) or place.source.tree
            key = site.file + site.cell_id, _first_line(body)
            keys.setdefault(key, site)
            found[key].append(place)
    return {keys[key]: places for key, places in found.items()}


def _first_line(body: ast.AST) -> int:
    return getattr(body, "lineno", 0)


def _device_of(node: ast.AST) -> ast.expr | None:
    """`x` of `x.device == "cpu"`."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return None
    for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        says = other.value if isinstance(other, ast.Constant) else None
        if isinstance(one, ast.Attribute) and one.attr == "device" and access_paths.place_of(says):
            return one.value
    return None


def _worked_on(path: ast.expr, places: list[SourceNode]) -> bool:
    """Whether an op of the function took it as a tensor: in arithmetic, as an argument of what ran ops at its line."""
    said = ast.dump(path)
    return any(ast.dump(operand) == said for place in places for operand in _operands(place.node))


def _operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call) or called_name(node) in FACTORIES:
        return []
    return node.args  # not what a method is of: `self.norm(x)` runs a layer of `self`


def _is_known(path: ast.expr, queries: TraceQueries, at: Site) -> bool:
    """Whether the objects that are still there tell: a tensor, or a property that gives a tensor's device."""
    frames = [frame for _, frame in queries.frames if frame.f_code.co_filename == at.file]
    scopes = [Scope.of(frame) for frame in frames if frame.f_code.co_qualname == at.function]
    namespace = queries.live.namespace if queries.live is not None else None
    scopes += [Scope({}, namespace)] if namespace is not None and not at.function else []
    return any(_answers(evaluate(path, scope)) for scope in (*scopes, *_of_objects(queries, at)))


def _of_objects(queries: TraceQueries, at: Site) -> Iterator[Scope]:
    """For a method that has returned: `self` is any object of its class that variables lead to."""
    klass = at.function.rpartition(".")[0]
    for value in FailureSnapshot(queries).walk.objects.values() if klass and queries.live is not None else ():
        if type(value).__qualname__ == klass:
            yield Scope({"self": value}, {})


def _answers(value: object) -> bool:
    if value is MISSING or access_paths.is_tensor(value):
        return value is not MISSING
    given = returned_by_property(value, "device")
    if given is None or not isinstance(given[0], ast.Attribute) or given[0].attr != "device":
        return False
    return access_paths.is_tensor(evaluate(given[0].value, given[1])) or _is_first_parameter(given[0].value)


def _is_first_parameter(node: ast.expr) -> bool:
    """`next(self.parameters())`."""
    inner = node.args[0] if isinstance(node, ast.Call) and called_name(node) == "next" and node.args else None
    return isinstance(inner, ast.Call) and called_name(inner) == "parameters"


def _finding(queries: TraceQueries, code: Code, node: ast.AST, left: ast.expr) -> Finding:
    assert isinstance(node, ast.Compare)
    sides = (node.left, node.comparators[0])
    said = str(next(side.value for side in sides if isinstance(side, ast.Constant)))
    always = "always true" if isinstance(node.ops[0], ast.NotEq) else "never true"
    sign = "!=" if isinstance(node.ops[0], ast.NotEq) else "=="
    new = f'str({code.text(left)}.device) {sign} "{said}"' if ":" in said else ""
    new = new or f'{code.text(left)}.device.type {sign} "{said}"'
    edit = code.replaced(node, new)
    return Finding(
        rule="device-comparison",
        severity="warning",
        cause="",
        devices=(),
        site=queries.site_in(code.source, node, code.site),
        message=f"`{code.text(node)}` is {always}: a torch.device is not equal to a string.",
        help=f"compare its type: {new}" if ":" not in said else f"compare its text: {new}",
        edits=(edit,) if edit is not None else (),
    )
