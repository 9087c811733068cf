"""Values that a line reads of a device, only to have them used there again in the same step: they could stay there.

word = torch.multinomial(chances, 1).item()     # words.append(word) can wait until after the loop,
token.fill_(word)                               # and token.copy_(picked) needs no number
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from devtrace.costs.cost_findings import Needless
from devtrace.costs.decisions import is_number, is_put_in, may_be_tensor
from devtrace.costs.loops import loops_around
from devtrace.costs.repeated_costs import OFTEN, SAMPLE, Habit
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source.flow import DEFINED
from devtrace.source.matching import alone, called_name, is_read, match_code, nodes_of, owner_of, variable
from devtrace.source.vocabulary import EXTENDS, GIVES_NUMBERS, TAKES_VALUES, package
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name

_SIMPLE: Final = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_PASSED_ON: Final = (ast.Name, ast.Tuple, ast.List, ast.BinOp, ast.Constant, ast.Starred)
_NUMBERS: Final = (ast.keyword, ast.Slice)
_COMPUTES: Final[dict[type[ast.operator], tuple[str, ...]]] = {
    ast.Add: ("add",),
    ast.Sub: ("sub", "rsub"),
    ast.Mult: ("mul",),
    ast.Div: ("div", "reciprocal"),
    ast.Pow: ("pow",),
}
"""What a device computes for an operator between a tensor and a number."""
_PLAIN: Final = (*_PASSED_ON, ast.Attribute, ast.Subscript)


def of_written_back(habit: Habit) -> Needless | None:
    """Find what each step reads and uses on the device again, if nothing else needs it before the loop ends."""
    found = habit.found
    if found is None or habit.count < OFTEN or not habit.is_of_the_user or not habit.pace.is_of_each_step:
        return None
    loop = next(iter(loops_around(found)), None)
    uses = _used_at_once(habit, found) or (_used_again(habit, found, loop) if loop is not None else None)
    if not uses:
        return None
    key, site = uses[0]
    if habit.kind != "syncs":
        name = brief(found.source.segment(found.node))
        why = sentence("copy.back-computed", name=name, site=site)
        return Needless(habit, why, sentence("copy.back.help", name=name))
    return Needless(habit, sentence(key, site=site), sentence("host-sync.to-return.help", site=site))


def _used_at_once(habit: Habit, found: SourceNode) -> list[tuple[str, Site]]:
    """Return where a device computes with the value in the very statement that reads it: `y / y.max().item()`."""
    if habit.kind != "syncs" or called_name(found.node) not in GIVES_NUMBERS:
        return []
    for inner, outer in pairwise(found.source.below(found.node, found.statement)):
        names: Sequence[str] = ()
        match outer:
            case ast.BinOp(left=left, right=right, op=operator):
                other = right if inner is left else left
                is_computed = not is_number(found, other) and called_name(other) not in GIVES_NUMBERS
                names = _COMPUTES.get(type(operator), ()) if is_computed else ()
            case ast.Call() if may_be_tensor(outer, inner):
                names = (called_name(outer).removesuffix("_"),)
        site = _site_of_most(habit, found, found.statement, names) if names else None
        if site is not None:
            return [("host-sync.to-use", site)]
    return []


def _used_again(habit: Habit, found: SourceNode, loop: ast.stmt) -> list[tuple[str, Site]] | None:
    """Return where a loop uses the value on a device, and as what; None if a statement needs it on the CPU."""
    names, again = list(_taking(found.statement)) if _keeps_the_value(found) else [], list[tuple[str, Site]]()
    for name in names:
        for use in (node for node in nodes_of(ast.Name, loop) if node.id == name and is_read(node)):
            statement = found.source.statement(use)
            if statement is found.statement or statement is None:
                continue
            is_within = any(isinstance(each, DEFINED) for each in found.source.below(use, loop))
            if is_within or not isinstance(statement, _SIMPLE):
                return None
            way = _way_back(habit, found, use, statement)
            site = _site_of_most(habit, found, statement) if way else None
            if site is not None:
                again.append((way, site))
            elif not _can_wait(found, use, statement):
                return None
            elif _is_passed_on(found, use, statement):
                names += [each for each in _taking(statement) if each not in names]
    return again


def _keeps_the_value(found: SourceNode) -> bool:
    """Return whether the reading statement gives on what it reads, and not what some function makes of it."""
    statement = found.statement

    def is_known(each: ast.AST) -> bool:
        if not called_name(each):
            return isinstance(each, _PLAIN)
        function: ast.expr = each.func  # type: ignore[attr-defined]
        if each in (found.node, alone(statement)) or found.node in ast.walk(function):
            return True
        return variable(function) in TAKES_VALUES or package(function, found.source) in ("numpy", "torch")

    return all(map(is_known, found.source.below(found.node, statement)))


def _taking(statement: ast.stmt) -> Iterator[str]:
    """Yield the variables that a statement gives its value, or to whose list it adds that."""
    call = alone(statement)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if call is not None:
        targets = [owner_of(call)] if called_name(call) in EXTENDS else []
    yield from filter(None, map(variable, targets))


def _way_back(habit: Habit, found: SourceNode, use: ast.Name, statement: ast.stmt) -> str:
    """Return the words for a value that a tensor may get or meet in a statement; empty if a number is needed there."""
    if _puts_into_a_tensor(found, use, statement):
        return "host-sync.to-return"
    is_number = habit.kind == "syncs" and called_name(found.node) in GIVES_NUMBERS  # `max(a, b)` may give a tensor
    return "host-sync.to-use" if is_number and _is_mixed(found, use, statement) else ""


def _is_mixed(found: SourceNode, use: ast.Name, statement: ast.stmt) -> bool:
    """Return whether a tensor would do as well beside other tensors: `y - x`, `p.mul_(x)`; an `alpha=` is a number."""
    around = list(pairwise(found.source.below(use, statement)))
    mixing = (isinstance(outer, ast.BinOp) or may_be_tensor(outer, inner) for inner, outer in around)
    needing = (isinstance(inner, _NUMBERS) and not may_be_tensor(outer, inner) for inner, outer in around)
    return any(mixing) and not any(needing)


def _puts_into_a_tensor(found: SourceNode, use: ast.Name, statement: ast.stmt) -> bool:
    """Return whether a factory takes the value, or a tensor is filled with it: `torch.tensor([x])`, `t[0, 0] = x`."""
    around = list(found.source.below(use, statement))
    is_made = any(is_put_in(outer, inner) for inner, outer in pairwise(around))
    stored = match_code("$tensor[$at] = $value", statement)
    value = stored["value"] if stored is not None else None
    return is_made or (value in around and isinstance(value, _PASSED_ON))


def _can_wait(found: SourceNode, use: ast.Name, statement: ast.stmt) -> bool:
    """Return whether what a statement makes of the value is only kept: `words.append(text[x])`, `out += names[x]`."""
    if any(isinstance(each, ast.IfExp | ast.Compare | ast.BoolOp) for each in found.source.below(use, statement)):
        return False
    call = alone(statement)
    if call is not None:
        return called_name(call) in EXTENDS
    is_looked_up = match_code("$target = $table[$key]", statement) is not None
    return is_looked_up or isinstance(statement, ast.AugAssign) or _is_passed_on(found, use, statement)


def _is_passed_on(found: SourceNode, use: ast.Name, statement: ast.stmt) -> bool:
    """Return whether a statement keeps the value itself, and nothing that was looked up by it or computed from it."""
    gathering = alone(statement)
    return all(each is gathering or isinstance(each, _PASSED_ON) for each in found.source.below(use, statement))


def _site_of_most(habit: Habit, found: SourceNode, statement: ast.stmt, names: Sequence[str] = ()) -> Site | None:
    """Return the site at which a statement makes, fills or computes a device's tensor after most of the reads.

    If `names` are given, by an op of one of these.
    """
    some = list(pairwise(habit.ops))[:SAMPLE]
    sites = [_site_of(habit.queries, found, statement, *pair, names) for pair in some]
    there = [site for site in sites if site is not None]
    return there[0] if there and 2 * len(there) >= len(sites) else None


def _site_of(
    queries: TraceQueries, found: SourceNode, back: ast.stmt, first: OpId, last: OpId, names: Sequence[str]
) -> Site | None:
    span, of_read = found.source.span(back), queries.site(queries.op_user(first))
    for op in map(OpId, range(first + 1, last)):
        is_on_device = queries.trace.ops.number("device", op) != queries.host
        is_made = is_on_device and queries.kind(op) in ("copy", "create", "compute")
        is_made = is_made and (not names or short_op_name(queries.op_name(op)).removesuffix("_") in names)
        site = queries.site(queries.op_user(op)) if is_made else None
        is_of_file = site and of_read and (site.file, site.cell_id) == (of_read.file, of_read.cell_id)
        if site and is_of_file and span.line <= site.line <= span.end_line:
            return site
    return None
