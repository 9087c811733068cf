"""What code decides by a value that it reads: how long a loop goes on, which branch it takes, what it indexes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, TypeGuard

from devtrace.costs.loops import loops_around, results_of
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.source.flow import LOOPS, binds, own_name, path_of, paths_in
from devtrace.source.matching import (
    assigned_names,
    called_name,
    calls_in,
    match_code,
    names_in,
    nodes_of,
    owner_of,
    same_code,
)
from devtrace.source.vocabulary import CHECKS_FLOATS, EXTENDS, changes_itself, full_name, package
from devtrace.trace.ids import NO_TENSOR, OpId
from devtrace.words.text_format import short_op_name

_NOT_FINITE: Final = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def decides_the_loop(found: SourceNode) -> bool:
    """Return whether the value says how long a loop goes on: that needs it. A guard against what never is does not."""
    statement = found.statement
    names = set(assigned_names(statement)) if isinstance(statement, ast.Assign | ast.AnnAssign) else set()
    tests = (test for test in _tests_of_loops(found) if not _checks_floats(test, found))
    return any(found.node in ast.walk(test) or not names.isdisjoint(names_in(test)) for test in tests)


def _checks_floats(test: ast.expr, found: SourceNode) -> bool:
    """Return whether a test asks for NaN or infinity: `isnan(x)`, `x != x`, `x == float("inf")`, `x < math.inf`."""
    if any(called_name(call) in CHECKS_FLOATS for call in calls_in(test)):
        return True
    compared = nodes_of(ast.Compare, test)
    return any(_is_not_finite(side, found) or same_code(one.left, side) for one in compared for side in one.comparators)


def _is_not_finite(value: ast.expr, found: SourceNode) -> bool:
    """Return whether code is NaN or infinity: `float("inf")`, `math.inf`, `-np.nan`."""
    if isinstance(value, ast.UnaryOp):
        return _is_not_finite(value.operand, found)
    given = match_code("float($text)", value)
    text = getattr(given["text"], "value", None) if given is not None else None
    if type(text) is str:
        return _NOT_FINITE.fullmatch(text) is not None
    return full_name(value, found.source).rpartition(".")[2] in ("inf", "nan")


def is_gone_on_by(queries: TraceQueries, found: SourceNode, op: OpId) -> bool:
    """Return whether a value of the step picks what the code does next.

    So does a size, an index or a length. A guard that only raises picks nothing, and state that the object itself
    keeps need not be asked for each time.
    """
    asked = _test_of(found) or (found.node if _is_whole_or_true(queries, op) else None)
    names = nodes_of(ast.Name, asked) if asked is not None else ()
    kept = (own_name(found.source, found.node), "bool", "int")
    is_of_the_step = any(not full_name(name, found.source) for name in names if name.id not in kept)
    return is_of_the_step and not _is_guard(found.statement)


def _is_whole_or_true(queries: TraceQueries, op: OpId) -> bool:
    """Return whether a whole number is read, or whether two tensors are equal."""
    return is_whole(queries, op) or short_op_name(queries.op_name(op)) == "equal"


def is_whole(queries: TraceQueries, op: OpId) -> bool:
    row = next(iter(queries.inputs(op)), NO_TENSOR)
    return row >= 0 and queries.trace.tensors[row].dtype.startswith(("int", "uint"))


def _test_of(found: SourceNode) -> ast.expr | None:
    """Return the condition that a value is part of: of a branch, or a truth that is passed on."""
    node = found.node
    for each in (node, *found.source.ancestors(node)):
        if isinstance(each, ast.If | ast.While | ast.IfExp) and (each is node or node in ast.walk(each.test)):
            return each.test
        if isinstance(each, ast.Compare | ast.BoolOp) or _is_a_truth(each):
            return each
        if isinstance(each, ast.stmt):
            break
    return None


def _is_a_truth(node: ast.AST | None) -> TypeGuard[ast.expr]:
    """Return whether code is `not x` or `bool(x)`."""
    return any(match_code(pattern, node) is not None for pattern in ("not $x", "bool($x)"))


def _is_guard(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(orelse=[], body=body):
            return all(isinstance(each, ast.Raise) for each in body)
        case ast.Assert():
            return True
    return False


def _tests_of_loops(found: SourceNode) -> Iterator[ast.expr]:
    """Yield the conditions of the function that end a loop, or answer whether one is to end."""
    function = found.source.function(found.node)
    for node in ast.walk(function or found.source.tree):
        if isinstance(node, ast.While) or (isinstance(node, ast.If) and _leaves(found, node)):
            yield node.test
        elif isinstance(node, ast.Return) and (isinstance(node.value, ast.Compare) or _is_a_truth(node.value)):
            yield node.value


def _leaves(found: SourceNode, branch: ast.If) -> bool:
    last = branch.body[-1]
    if any(match_code(pattern, last) is not None for pattern in ("return True", "return False")):
        return True
    in_a_loop = any(isinstance(outer, LOOPS) for outer in found.source.ancestors(branch))
    return in_a_loop and isinstance(last, ast.Break | ast.Return)


def comes_back(found: SourceNode) -> bool:
    """Return whether the value comes back in the next round: `state = env.step(action.item())`.

    It is passed to code outside torch, whose result, or object, the next round reads.
    """
    loop = next(iter(loops_around(found)), None)
    reached = {path for use in results_of(found) for path in _changed_by(found, use)}
    statements = list(nodes_of(ast.stmt, loop)) if loop is not None and reached else []
    for _ in statements:
        more = {name for each in statements if each is not loop and paths_in(each) & reached for name in binds(each)}
        if more <= reached:
            break
        reached |= more
    return bool(paths_in(found.node) & reached)


def _changed_by(found: SourceNode, use: ast.AST) -> Iterator[str]:
    """Yield the object of a call outside torch that takes a value, and the variables for its result."""
    statement = found.source.statement(use)
    calls = (each for each in found.source.ancestors(use) if each is not use and called_name(each))
    taker = next((each for each in calls if use not in ast.walk(each.func)), None)  # type: ignore[attr-defined]
    owner, method = (owner_of(taker), called_name(taker)) if taker is not None else (None, "")
    if owner is not None and not package(owner, found.source) and not (method in EXTENDS or changes_itself(method)):
        yield from filter(None, (path_of(owner), *binds(statement)))  # type: ignore[arg-type]
