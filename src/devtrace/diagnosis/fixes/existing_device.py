"""Code that asks for a device that does not exist asks for one that does: where it says so, not where it fails."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.asked_devices import AskedDevice, accelerator, devices_named
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Edit, Line
from devtrace.diagnosis.fixes.register_on_module import assignments
from devtrace.diagnosis.fixes.respelt_device import respelt
from devtrace.source.flow import bindings, defaults, given_by, parameters
from devtrace.source.matching import (
    assigned_names,
    called_name,
    calls_in,
    chain,
    keyword,
    names_in,
    nodes_of,
    same_code,
    variable,
)
from devtrace.source.plain_values import plain
from devtrace.source.safe_values import class_dict, evaluate
from devtrace.words.catalogue import sentence

_Origin = tuple[Code, ast.AST]
MOST_STEPS: Final = 4
"""From variable to variable, back to where a device was named."""


def existing_device(asked: AskedDevice, there: list[str]) -> tuple[Edit, ...]:
    """Return the change that asks for the first device that exists; of a list those of it that exist."""
    for code, given in _sources_of(asked):
        edit = (
            _listed(asked, code, given, there)
            or _literal(asked, code, given, there)
            or respelt(asked, code, given, there[0])
            or _counted(asked, code, given)
            or _ranged(asked, code, given)
        )
        if edit is not None:
            return (edit,)
    return ()


def who_asked(asked: AskedDevice, failing: FailingFrame) -> tuple[Line, ...]:
    """Return the line that says which device, if it is not the one that fails."""
    code, given = next(_sources_of(asked))
    is_default = code.source.nearest(ast.arguments, given) is not None
    statement = given if is_default else code.source.statement(given)
    if statement is None or statement is failing.source_node.statement:
        return ()
    return (Line(sentence("label.created"), asked.frame.snapshot.queries.site_in(code.source, statement, code.site)),)


def _sources_of(asked: AskedDevice) -> Iterator[_Origin]:
    """Yield the code that gives what asks for the device its value, the first giver first, then that code itself."""
    yield from _givers(asked, asked.node, MOST_STEPS)
    yield asked.frame.code, asked.node


def _givers(asked: AskedDevice, node: ast.AST, steps: int) -> Iterator[_Origin]:
    given = _of_attribute(asked, node.value, node.attr) if type(node) is ast.Attribute else _of_variable(asked, node)
    for code, value in given if steps else ():
        for inner in nodes_of(ast.expr, value):
            if type(inner) in (ast.Name, ast.Attribute) and not same_code(inner, node) and asked.is_named_by(inner):
                yield from _givers(asked, inner, steps - 1)
        yield code, value


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
    for outer in frame.source.ancestors(frame.source_node.node):
        for loop in (outer, *getattr(outer, "generators", ())):
            if hasattr(loop, "iter") and name in assigned_names(loop.target):
                yield from _values_of(frame, variable(loop.iter))
                yield loop.iter


def _of_attribute(asked: AskedDevice, owned: ast.expr, attribute: str) -> Iterator[_Origin]:
    """Yield what the class of an object, or the class itself, gives an attribute."""
    frame = asked.frame
    owner = evaluate(owned, frame.scope())
    for code, statement in assignments(frame.snapshot.queries, owner, attribute):
        if statement.value is not None:
            yield code, statement.value
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
        if (
            stored == attribute
            and default is not None
            and not any(each.partition("=")[0] in flags for each in sys.argv)
        ):
            yield default


def _literal(asked: AskedDevice, code: Code, given: ast.AST, there: list[str]) -> Edit | None:
    """Return the change of the one literal that names the device, or of its number where the kind is the same."""
    kind, _, number = asked.device.partition(":")
    texts = [each for each in nodes_of(ast.Constant, given) if asked.device in (_in_text(each), each.value)]
    numbers = [each for each in nodes_of(ast.Constant, given) if type(each.value) is int and str(each.value) == number]
    if len(texts) == 1:
        return code.replaced(texts[0], f'"{there[0]}"')
    if len(numbers) == 1 and not texts and there[0].partition(":")[0] == kind:
        return code.replaced(numbers[0], there[0].partition(":")[2])
    return None


def _in_text(node: ast.Constant) -> str:
    return access_paths.device_named_by(node.value)


def _listed(asked: AskedDevice, code: Code, given: ast.AST, there: list[str]) -> Edit | None:
    """Return a list of devices without those that do not exist: `device_ids=[0]`."""
    is_list = len(devices_named(asked.frame, asked.node)) > 1
    listed = code.source.parent(asked.node) if given is asked.node and not is_list else given
    match listed:
        case ast.List(elts=parts):
            left, right = "[", "]"
        case ast.Tuple(elts=parts):
            left, right = "(", ",)"
        case _:
            return None
    if not is_list and given is not asked.node:
        return None
    values = [plain(each, asked.frame.scope()) for each in parts]
    named = [f"{accelerator()}:{value}" if type(value) is int else value for value in values]
    exist = [code.text(each) for each, name in zip(parts, named, strict=True) if name in there]
    text = left + ", ".join(exist) + (right if len(exist) == 1 else right[-1])
    return code.replaced(listed, text) if exist and None not in values else None


def _counted(asked: AskedDevice, code: Code, given: ast.AST) -> Edit | None:
    """Return the change that counts devices round: `f"cuda:{number % torch.cuda.device_count()}"`.

    A rank, which a job has or a function is given, would share its device with another then; NCCL refuses that.
    """
    kind, _, number = asked.device.partition(":")
    torch = next((name for name, full in code.source.imports.items() if full == "torch"), "")
    ranks = asked.frame.snapshot.queries.trace.threads.ints("rank")
    if not number.isdecimal() or not torch or kind != accelerator() or (ranks >= 0).any():
        return None
    scope = asked.frame.scope()
    is_text = type(plain(given, scope)) is str
    inner = (each for each in ast.walk(given) if type(each) not in (ast.Constant, ast.FormattedValue))
    counted = next((each for each in inner if plain(each, scope) == int(number)), None)
    if counted is None or names_in(counted) & {*parameters(asked.frame.body)}:
        return None
    if not is_text and variable(counted) not in _loop_variables(code, given):
        return None
    around = f"{ast.unparse(counted)} % {torch}.{kind}.device_count()"
    return code.replaced(given, f'f"{kind}:{{{around}}}"' if is_text else around)


def _ranged(asked: AskedDevice, code: Code, given: ast.AST) -> Edit | None:
    """Return the range of a list or a loop of devices with as many as there are: `range(torch.cuda.device_count())`."""
    kind, _, number = asked.device.partition(":")
    torch = next((name for name, full in code.source.imports.items() if full == "torch"), "")
    ranges = [call for call in calls_in(given) if called_name(call) == "range" and len(call.args) == 1]
    if len(ranges) != 1 or not torch or not number.isdecimal() or kind != accelerator():
        return None
    stop = plain(ranges[0].args[0], asked.frame.scope())
    is_past = type(stop) is int and int(number) < stop
    return code.replaced(ranges[0].args[0], f"{torch}.{kind}.device_count()") if is_past else None


def _loop_variables(code: Code, node: ast.AST) -> list[str]:
    """Return what the loops and comprehensions around code go through."""
    around = (part for outer in code.source.ancestors(node) for part in (outer, *getattr(outer, "generators", ())))
    return assigned_names(*(part.target for part in around if hasattr(part, "iter")))
