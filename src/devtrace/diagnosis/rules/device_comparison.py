"""device-comparison: `x.device == "cpu"` is never true, as a torch.device is no string; the branch it guards is dead.

Many objects keep their device as a string, and there the comparison is right. So only what is known to answer with a
torch.device is reported: a tensor, or an object whose property gives a tensor's.

    if x.device == "cuda": x = x.half()             # bad: never true
    if x.device.type == "cuda": x = x.half()        # good
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Finding, Site
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.source.matching import called_name, match_code, same_code
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import MISSING, Scope, evaluate, returned_by_property
from devtrace.source.vocabulary import MAKES
from devtrace.words.catalogue import sentence

_COMPARISONS: Final = ("$x.device == $text", "$text == $x.device", "$x.device != $text", "$text != $x.device")


@dataclass(frozen=True)
class Comparison:
    """Two sides: `x` and `"cpu"` of `x.device == "cpu"`."""

    node: ast.Compare
    owner: ast.expr
    device: str


def compared_with_a_string(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """Find the comparisons in functions of the user's that ran."""
    snapshot = FailureSnapshot(queries)
    for site, nodes in _nodes_by_function(queries).items():
        source = nodes[0].source
        function = source.function(nodes[0].node)
        for node in ast.walk(function or source.tree):
            found = _comparison(node)
            if found is None or source.function(node) is not function:
                continue
            if _is_an_operand(found.owner, nodes) or _has_a_torch_device(found.owner, snapshot, site):
                yield _finding(queries, Code(source, site), found)


RULE: Final = CostRule(
    slug="device-comparison",
    find=compared_with_a_string,
)


def _nodes_by_function(queries: TraceQueries) -> dict[Site, list[SourceNode]]:
    """Return the nodes of ops, function by function; each by one of its sites."""
    found: dict[tuple[str, int], list[SourceNode]] = defaultdict(list)
    sites: dict[tuple[str, int], Site] = {}
    for id in range(len(queries.trace.sites)):
        node, site = queries.source_node(id) if not queries.package(id) else None, queries.site(id)
        if node is not None and site is not None:
            key = site.file + site.cell_id, getattr(node.source.function(node.node), "lineno", 0)
            sites.setdefault(key, site)
            found[key].append(node)
    return {sites[key]: nodes for key, nodes in found.items()}


def _comparison(node: ast.AST) -> Comparison | None:
    for pattern in _COMPARISONS if isinstance(node, ast.Compare) else ():
        found = match_code(pattern, node)
        text = found["text"] if found is not None else None
        if found is not None and isinstance(text, ast.Constant) and access_paths.device_named_by(text.value):
            return Comparison(cast("ast.Compare", node), found["x"], str(text.value))
    return None


def _is_an_operand(path: ast.expr, nodes: list[SourceNode]) -> bool:
    """Return whether an op of the function took it as a tensor: in arithmetic, or as an argument of a call."""
    return any(same_code(path, operand) for node in nodes for operand in _operands(node.node))


def _operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call) or called_name(node) in MAKES:
        return []
    return node.args  # not the owner of a method: `self.norm(x)` runs a layer of `self`


def _has_a_torch_device(path: ast.expr, snapshot: FailureSnapshot, site: Site) -> bool:
    """Return whether the objects that are still there show it: a tensor, or a property that gives a tensor's device."""
    return any(_answers(evaluate(path, scope)) for scope in _scopes(snapshot, site))


def _scopes(snapshot: FailureSnapshot, site: Site) -> Iterator[Scope]:
    """Yield the variables of a function: of the frames that still run it, of a cell, else of its class's objects."""
    frames = [frame for frame in snapshot.frames if frame.f_code.co_filename == site.file]
    yield from (Scope.of(frame) for frame in frames if frame.f_code.co_qualname == site.function)
    live, class_name = snapshot.queries.live, site.function.rpartition(".")[0]
    if live is not None and live.namespace is not None and not site.function:
        yield Scope({}, live.namespace)
    for value in snapshot.walk.objects.values() if class_name and live is not None else ():
        if type(value).__qualname__ == class_name:
            yield Scope({"self": value}, {})


def _answers(value: object) -> bool:
    """Return whether `.device` of a value is known to be a torch.device."""
    if value is MISSING or is_tensor(value):
        return value is not MISSING
    returned = returned_by_property(value, "device")
    found = match_code("$tensor.device", returned[0]) if returned is not None else None
    if returned is None or found is None:
        return False
    tensor = found["tensor"]
    return is_tensor(evaluate(tensor, returned[1])) or _is_first_parameter(tensor)


def _is_first_parameter(node: ast.expr) -> bool:
    """Return whether code is `next(self.parameters())`."""
    return match_code("next($module.parameters())", node) is not None


def _finding(queries: TraceQueries, code: Code, found: Comparison) -> Finding:
    is_negated = isinstance(found.node.ops[0], ast.NotEq)
    owner, sign, device = code.text(found.owner), "!=" if is_negated else "==", found.device
    has_index = ":" in device
    new = f'str({owner}.device) {sign} "{device}"' if has_index else f'{owner}.device.type {sign} "{device}"'
    edit = code.replaced(found.node, new)
    code_text = code.text(found.node)
    return Finding(
        rule="device-comparison",
        severity="warning",
        cause="",
        devices=(),
        site=queries.site_in(code.source, found.node, code.site),
        message=sentence(f"device-comparison.{'always' if is_negated else 'never'}", code=code_text),
        help=sentence(f"device-comparison.{'text' if has_index else 'type'}", code=new),
        edits=(edit,) if edit is not None else (),
    )
