"""What code decides by a value that it reads: how long a loop goes on, which branch it takes, what it indexes.

Such a value has to be on the host, as has one that Python code needs as a number: `scheduler.step(loss.item())`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, TypeGuard

from devtrace.costs.loops import assigned_to, loops_around, results_of
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.source.flow import LOOPS, binds, own_name, path_of, paths_in
from devtrace.source.matching import (
    alone,
    assigned_names,
    called_name,
    calls_in,
    match_code,
    names_in,
    nodes_of,
    owner_of,
    same_code,
    variable,
)
from devtrace.source.parsing import Source
from devtrace.source.vocabulary import (
    BOUNDS,
    CHECKS_FLOATS,
    EXTENDS,
    FACTORS,
    OF_VALUES,
    TAKES_VALUES,
    VIEWS,
    changes_itself,
    full_name,
    is_factory,
    is_mixing,
    package,
)
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
    is_number = is_whole(queries, op) or short_op_name(queries.op_name(op)) == "equal"  # which asks for a truth
    asked = _test_of(found) or (found.node if is_number else None)
    names = nodes_of(ast.Name, asked) if asked is not None else ()
    kept = (own_name(found.source, found.node), "bool", "int")
    is_of_the_step = any(not full_name(name, found.source) for name in names if name.id not in kept)
    return is_of_the_step and not _is_guard(found.statement)


def is_whole(queries: TraceQueries, op: OpId) -> bool:
    row = next(iter(queries.inputs(op)), NO_TENSOR)
    return row >= 0 and queries.trace.tensors[row].dtype.startswith(("int", "uint"))


def _test_of(found: SourceNode) -> ast.expr | None:
    """Return the condition that a value is part of: of a branch, or a truth that is passed on."""
    node = found.node
    for each in found.source.ancestors(node):
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
    taking = [(paths_in(each), binds(each)) for each in statements if each is not loop]
    while more := {name for paths, names in taking if paths & reached for name in names} - reached:
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


# Numbers that code needs as such, where no tensor does: sizes, bounds, rates, what is compared; what fills tensors.

_NUMBERS: Final = ("len", "numel", "size")
_OF_NUMBERS: Final = (ast.BinOp, ast.UnaryOp, ast.keyword, ast.Call)
"""Code that may hand on a number as an argument, or what is computed from it in Python."""


def is_put_in(call: ast.AST, argument: ast.AST) -> bool:
    """Return whether a call puts an argument into a tensor: `torch.tensor([x])`, `torch.full((2,), x)`."""
    name = called_name(call)
    if name.removeprefix("new_").removesuffix("_like") == "full":
        return argument in getattr(call, "args", [])[1:] or getattr(argument, "arg", "") == "fill_value"
    return name in OF_VALUES or name.endswith("Tensor")


def may_be_tensor(call: ast.AST, argument: ast.AST) -> bool:
    """Return whether a function takes a tensor as well where it is given a number: `p.mul_(x)`, `y.clamp(max=x)`.

    Of two bounds both are tensors, or neither is. An `alpha=` is a number.
    """
    if called_name(call).removesuffix("_") not in BOUNDS:
        return is_mixing(called_name(call)) and not hasattr(argument, "arg")
    given = (*call.args, *(word.value for word in call.keywords))  # type: ignore[attr-defined]
    return all(type(getattr(each, "operand", each)) is not ast.Constant for each in given)


def is_size(found: SourceNode) -> bool:
    """Return whether the function goes on by a value as a size or a bound: `x[:n]`, `range(n)`, `torch.zeros(n)`."""
    return any(_is_bound(found.source, use) for use in results_of(found))


def factor_of(found: SourceNode) -> str:
    """Return the argument, for a number only, that a value scales what a device computes by: `alpha` of `x.add_(y)`."""
    for inner, outer in (pair for use in results_of(found) for pair in pairwise(found.source.ancestors(use))):
        if getattr(inner, "arg", "") in FACTORS and is_mixing(called_name(outer)):
            return str(inner.arg)  # type: ignore[attr-defined]
    return ""


def taken_by(found: SourceNode) -> str:
    """Return the function of torch's that the function gives a value as an argument: `clip_grad_norm_(..., x)`."""
    for use in results_of(found):
        for inner, outer in pairwise(found.source.ancestors(use)):
            if called_name(outer) and called_name(outer) not in TAKES_VALUES:
                is_torchs = package(outer.func, found.source) == "torch"  # type: ignore[attr-defined]
                if is_torchs and not is_put_in(outer, inner):
                    return called_name(outer)
                break
            if not isinstance(outer, _OF_NUMBERS):
                break
    return ""


def is_rate(found: SourceNode) -> bool:
    """Return whether an optimizer gets the value as its rate: `group["lr"] = x`, `scheduler.step(x)`."""
    statements = [found.source.statement(use) for use in results_of(found)]
    given = (match_code('$group["lr"] = $value', each) for each in statements)
    stepped = (match_code("$scheduler.step($value)", alone(each)) for each in statements)
    return any(given) or any(stepped)


def _is_bound(source: Source, use: ast.AST) -> bool:
    for inner, outer in pairwise(source.ancestors(use)):
        name = called_name(outer)
        match outer:
            case ast.Slice():
                return True
            case ast.stmt() | ast.Subscript() | ast.Compare():
                return False
            case ast.Call(func=function) if name not in TAKES_VALUES:
                return (is_factory(name) and not is_put_in(outer, inner)) or (name in VIEWS and inner is not function)
        if name == "range":
            return True
    return False


def decides_later(found: SourceNode) -> bool:
    """Return whether the loop compares what the statement gets, or branches by it: `if value < best`."""
    compared: list[ast.AST] = []
    for loop in loops_around(found)[:1]:
        branches = (each for kind in (ast.If, ast.IfExp, ast.While) for each in nodes_of(kind, loop))
        compared += [*nodes_of(ast.Compare, loop), *(each.test for each in branches)]  # type: ignore[attr-defined]
    return not names_in(*compared).isdisjoint(assigned_names(found.statement))


def is_number(found: SourceNode, value: ast.expr | None, depth: int = 2) -> bool:
    """Return whether code is a number of Python's for certain: `16`, `len(x)`, `x.shape[0]`, or a variable of such."""
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float)
    shape = match_code("$x.shape[$i]", value)
    if shape is not None:
        return isinstance(shape["i"], ast.Constant)
    if value is None or not variable(value) or not depth:
        return value is not None and called_name(value) in _NUMBERS
    given = assigned_to(found, variable(value))
    return bool(given) and all(is_number(found, each, depth - 1) for each in given)
