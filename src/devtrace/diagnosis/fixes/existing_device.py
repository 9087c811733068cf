"""Code that asks for a device that does not exist asks for one that does: where it says so, not where it fails."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.asked_devices import AskedDevice, accelerator, devices_named
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import assignments
from devtrace.diagnosis.findings import Edit, Line
from devtrace.source.flow import bindings, defaults, given_by, parameters, rounds
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
_PARTS: Final = re.compile(r"(\s*([a-z]+)\s*[:_.-]?\s*)(\d*)\s*", re.IGNORECASE)
MOST_STEPS: Final = 4
"""From variable to variable, back to where a device was named."""


def existing_device(asked: AskedDevice, there: list[str]) -> tuple[Edit, ...]:
    """Return the change that asks for the first device that exists; of a list those of it that exist."""
    for code, given in _sources_of(asked):
        edit = (
            _listed(asked, code, given, there)
            or _literal(asked, code, given, there)
            or _respelt(asked, code, given, there[0])
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
    return (Line(sentence("label.created"), code.site_of(statement)),)


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


def _literal(asked: AskedDevice, code: Code, given: ast.AST, there: list[str]) -> Edit | None:
    """Return the change of the one literal that names the device, or of its number where the kind is the same."""
    kind, _, number = asked.device.partition(":")
    texts = [
        each
        for each in nodes_of(ast.Constant, given)
        if asked.device in (access_paths.device_named_by(each.value), each.value)
    ]
    numbers = [each for each in nodes_of(ast.Constant, given) if type(each.value) is int and str(each.value) == number]
    if len(texts) == 1:
        return code.replaced(texts[0], f'"{there[0]}"')
    if len(numbers) == 1 and not texts and there[0].partition(":")[0] == kind:
        return code.replaced(numbers[0], there[0].partition(":")[2])
    return None


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
    (kind, _, number), count = asked.device.partition(":"), _count(asked, code)
    ranks = asked.frame.snapshot.queries.trace.threads.ints("rank")
    if not count or (ranks >= 0).any():
        return None
    scope = asked.frame.scope()
    is_text = type(plain(given, scope)) is str
    inner = (each for each in ast.walk(given) if type(each) not in (ast.Constant, ast.FormattedValue))
    counted = next((each for each in inner if plain(each, scope) == int(number)), None)
    if counted is None or names_in(counted) & {*parameters(asked.frame.body)}:
        return None
    if not is_text and variable(counted) not in assigned_names(*(each.target for each in rounds(code.source, given))):
        return None
    around = f"{ast.unparse(counted)} % {count}"
    return code.replaced(given, f'f"{kind}:{{{around}}}"' if is_text else around)


def _ranged(asked: AskedDevice, code: Code, given: ast.AST) -> Edit | None:
    """Return the range of a list or a loop of devices with as many as there are: `range(torch.cuda.device_count())`."""
    count = _count(asked, code)
    ranges = [call for call in calls_in(given) if called_name(call) == "range" and len(call.args) == 1]
    stop = plain(ranges[0].args[0], asked.frame.scope()) if len(ranges) == 1 and count else None
    is_past = type(stop) is int and int(asked.device.partition(":")[2]) < stop
    return code.replaced(ranges[0].args[0], count) if is_past else None


def _count(asked: AskedDevice, code: Code) -> str:
    """Return the code that counts the devices there are, if one of them is asked for by number."""
    (kind, _, number), torch = asked.device.partition(":"), code.source.known_as("torch")
    return f"{torch}.{kind}.device_count()" if number.isdecimal() and torch and kind == accelerator() else ""


# A device that torch cannot read, `"cuda0"`, `"gpu"` or `"cuda:-1"`, spelt as it was meant.


def meant(text: str, there: list[str]) -> str | None:
    """Return the device that a text stands for; the first that exists, if there is none of the kind and number.

    A text that begins with no kind of device, such as `"auto"`, stands for none.
    """
    found = _PARTS.match(text)
    kind = found[2].lower() if found is not None else ""
    kind = accelerator() if kind == "gpu" else kind
    if found is None or not access_paths.device_named_by(kind):
        return None
    if found.end() < len(text):
        return there[0]
    named = f"{kind}:{int(found[3])}" if found[3] else kind
    return named if named in (*there, *(each.partition(":")[0] for each in there)) else there[0]


def _respelt(asked: AskedDevice, code: Code, given: ast.AST, device: str) -> Edit | None:
    """Return the change of a text that is computed, `f"cuda{rank}"`, to one that torch reads as the device."""
    scope = asked.frame.scope()
    if plain(given, scope) != asked.device:
        return None
    kind, _, number = asked.device.partition(":")
    counted = (each for each in nodes_of(ast.Name, given) if str(plain(each, scope)) == number)
    name = next(counted, None) if number.startswith("-") and kind == accelerator() else None
    if name is not None:
        return code.replaced(given, f'{code.text(given)} if {name.id} >= 0 else "cpu"')
    for part in nodes_of(ast.Constant, given):
        if type(part.value) is str and (begun := _PARTS.match(part.value)) and asked.device.startswith(part.value):
            other = part.value.replace(begun[1], f"{device.partition(':')[0]}:", 1)
            text = code.text(given).replace(part.value, other, 1)
            if plain(ast.parse(text, mode="eval").body, scope) == device:
                return code.replaced(given, text)
    return None
