"""Who says which device code asks for: a variable's value, an attribute's, a loop's, a default, a flag."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.asked_devices import AskedDevice
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import assignments
from devtrace.diagnosis.findings import Line
from devtrace.source.flow import bindings, defaults, given_by, parameters, rounds
from devtrace.source.matching import (
    assigned_names,
    called_name,
    calls_in,
    chain,
    keyword,
    nodes_of,
    same_code,
    variable,
)
from devtrace.source.safe_values import class_dict, evaluate
from devtrace.words.catalogue import sentence

_Origin = tuple[Code, ast.AST]
MOST_STEPS: Final = 4
"""From variable to variable, back to where a device was named."""


def who_asked(asked: AskedDevice, failing: FailingFrame) -> tuple[Line, ...]:
    """Return the line that says which device, if it is not the one that fails."""
    code, given = _giver(asked, asked.node, MOST_STEPS) or (asked.frame.code, asked.node)
    is_default = code.source.nearest(ast.arguments, given) is not None
    statement = given if is_default else code.source.statement(given)
    if statement is None or statement is failing.source_node.statement:
        return ()
    return (Line(sentence("label.created"), code.site_of(statement)),)


def _giver(asked: AskedDevice, node: ast.AST, steps: int) -> _Origin | None:
    """Return the code that gives what asks for the device its value, the first giver of all."""
    given = _of_attribute(asked, node.value, node.attr) if type(node) is ast.Attribute else _of_variable(asked, node)
    origin = next(given, None) if steps else None
    if origin is None:
        return None
    paths = (each for each in nodes_of(ast.expr, origin[1]) if type(each) in (ast.Name, ast.Attribute))
    inner = (each for each in paths if not same_code(each, node) and asked.is_named_by(each))
    return next(filter(None, (_giver(asked, each, steps - 1) for each in inner)), origin)


def _of_variable(asked: AskedDevice, node: ast.AST) -> Iterator[_Origin]:
    """Yield what a variable, or one that an entry is of, was given last, by a loop, by default."""
    frame = asked.frame
    name = variable([*chain(node)][-1])
    if not name or type(node) not in (ast.Name, ast.Subscript):
        return
    yield from ((frame.code, each) for each in _values_of(frame, name))
    yield from ((frame.code, each) for each in _gone_through(frame, name))
    if name in parameters(frame.body) and not frame.bindings(name):
        yield from ((frame.code, value) for each, value in defaults(frame.function) if each == name)


def _values_of(frame: FailingFrame, name: str) -> list[ast.expr]:
    """Return what a function, or its file if the variable is none of the function's, gave a variable last."""
    statements = frame.bindings(name)
    if not statements and name in frame.scope().globals and name not in frame.scope().locals:
        statements = [each.statement for each in bindings(frame.source, frame.source.tree, name)]
    bound = (pair for statement in statements[-1:] for pair in given_by(frame.source, statement))
    return [each.value for path, each in bound if path == name]


def _gone_through(frame: FailingFrame, name: str) -> Iterator[ast.expr]:
    """Yield what the loops around a line go through for a variable, and what the name of that was given."""
    for loop in rounds(frame.source, frame.source_node.node):
        if name in assigned_names(loop.target):
            yield from _values_of(frame, variable(loop.iter))
            yield loop.iter


def _of_attribute(asked: AskedDevice, owned: ast.expr, attribute: str) -> Iterator[_Origin]:
    """Yield what the class of an object, or the class itself, gives an attribute."""
    frame = asked.frame
    owner = evaluate(owned, frame.scope())
    yield from ((each.code, each.node) for each in assignments(frame.snapshot.queries, owner, attribute))
    kind = owner if issubclass(type(owner), type) else type(owner)
    yield from ((frame.code, each) for each in _defaults_of_flags(asked, kind, attribute))
    for body in nodes_of(ast.ClassDef, frame.source.tree):
        if body.name == type.__dict__["__name__"].__get__(kind) and attribute in class_dict(kind):
            yield from ((frame.code, each.value) for each in bindings(frame.source, body, attribute))


def _defaults_of_flags(asked: AskedDevice, kind: type, attribute: str) -> Iterator[ast.expr]:
    """Yield the defaults of a parser's flags that give a namespace an attribute, unless the command has the flag."""
    calls = calls_in(asked.frame.source.tree) if kind is argparse.Namespace else ()
    for call in (each for each in calls if called_name(each) == "add_argument"):
        flags = [each.value for each in call.args if type(each) is ast.Constant and type(each.value) is str]
        stored = getattr(keyword(call, "dest"), "value", None) or next(
            (each.lstrip("-").replace("-", "_") for each in flags if each.startswith("--")), None
        )
        default = keyword(call, "default")
        is_given = any(each.partition("=")[0] in flags for each in sys.argv)
        if stored == attribute and default is not None and not is_given:
            yield default
