"""Numbers that code needs as such, where no tensor does: sizes, bounds, rates, what is compared; what fills tensors."""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import Final

from devtrace.costs.loops import assigned_to, loops_around, results_of
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.matching import alone, assigned_names, called_name, match_code, names_in, nodes_of, variable
from devtrace.source.parsing import Source
from devtrace.source.vocabulary import BOUNDS, FACTORS, OF_VALUES, TAKES_VALUES, VIEWS, is_factory, is_mixing, package

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
    return any(
        match_code('$group["lr"] = $value', each) is not None
        or (each is not None and match_code("$scheduler.step($value)", alone(each)) is not None)
        for each in statements
    )


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
