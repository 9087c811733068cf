"""Branches that a program did not take, by the lines that ran and by look-ups."""

import ast
from collections.abc import Container, Iterator, Sequence
from itertools import takewhile
from typing import Final

from devtrace.source.parsing import Source
from devtrace.source.safe_values import MISSING, Scope, evaluate

_PLAIN: Final = (bool, int, float, str, type(None), list, tuple, dict)


def was_passed_by(statement: ast.stmt, source: Source, at: ast.AST, ran: Container[int], scope: Scope) -> bool:
    """Return whether a statement is in a branch that did not run on the way to a node. `ran`: lines that ran."""
    around: set[ast.AST] = set(source.ancestors(at))
    inner: ast.AST = source.tree
    for outer in source.ancestors(statement):
        if outer in around and outer is not at:
            return False
        if not _ran([statement], source, ran) and any(_returns(each, scope) for each in _above(inner, source)):
            return True
        if outer is at:
            return False
        match outer:
            case ast.If(body=body, orelse=orelse) if inner in body or inner in orelse:
                block, other = (body, orelse) if inner in body else (orelse, body)
                is_against = truth(outer.test, scope) is (block is orelse)
                if not _ran(block, source, ran) and (is_against or _ran(other, source, ran)):
                    return True
            case ast.ExceptHandler(body=body) if not _ran(body, source, ran):
                return True
        inner = outer
    return False


def _above(statement: ast.AST, source: Source) -> Iterator[ast.stmt]:
    """Return the statements of its block above one."""
    return takewhile(lambda each: each is not statement, source.block(statement))


def _returns(statement: ast.stmt, scope: Scope) -> bool:
    """Return whether the function ends in the branch that was taken, by look-ups."""
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            is_true = truth(test, scope)
            match (body if is_true else orelse)[-1:]:
                case [ast.Return() | ast.Raise()]:
                    return is_true is not None
    return False


def _ran(block: Sequence[ast.stmt], source: Source, ran: Container[int]) -> bool:
    spans = map(source.span, block)
    return any(line in ran for span in spans for line in range(span.line, span.end_line + 1))


def truth(test: ast.expr, scope: Scope) -> bool | None:
    """Return whether a condition holds now, as look-ups tell; None if they do not."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(operand, scope)
            return None if inner is None else not inner
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            value = evaluate(left, scope)
            return None if value is MISSING else (value is None) is (type(op) is ast.Is)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=constant)]):
            value = evaluate(left, scope)
            return (value == constant) is (type(op) is ast.Eq) if type(value) in (bool, int, str) else None
        case ast.Constant(value=constant):
            return bool(constant)
    value = evaluate(test, scope)
    return bool(value) if type(value) in _PLAIN else None


def is_on_every_way(bound: Sequence[ast.stmt], source: Source, at: ast.AST) -> bool:
    """Return whether statements above a node assign a name in every branch."""
    around = set(source.ancestors(at))
    inner = (getattr(outer, name, None) for outer in around for name in ("body", "orelse", "finalbody"))
    blocks = (each for each in inner if isinstance(each, list))
    return any(_gives(block, bound) for block in blocks if not around.isdisjoint(block))


def _gives(block: Sequence[ast.stmt], bound: Sequence[ast.stmt]) -> bool:
    return any(each in bound or _gives_within(each, bound) for each in block)


def _gives_within(statement: ast.stmt, bound: Sequence[ast.stmt]) -> bool:
    match statement:
        case ast.If(body=body, orelse=orelse):
            return _gives(body, bound) and _gives(orelse, bound)
        case ast.With(body=body) | ast.AsyncWith(body=body) | ast.For(body=body) | ast.While(body=body):
            return _gives(body, bound)
        case ast.Try(body=body, finalbody=last):
            return _gives(body, bound) or _gives(last, bound)
    return False
