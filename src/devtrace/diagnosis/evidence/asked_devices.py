"""The device that a line asks for, and the code that names it: here, or in a caller.

And who gave that code its value: a variable, an attribute, a loop, a default (`who_asked`).
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import assignments
from devtrace.diagnosis.findings import Line
from devtrace.source import kinds
from devtrace.source.defuse import bindings, given_by, gone_through
from devtrace.source.matching import called_name, chain, nodes_of, same_code, variable
from devtrace.source.parsing import defaults, parameters
from devtrace.source.safe_values import class_dict, evaluate, plain, worth
from devtrace.source.vocabulary import DEVICE_LISTS, full_name, takes_number
from devtrace.words.catalogue import sentence

Refused = Callable[[str], bool]


class AskedDevice(NamedTuple):
    """A device that code asks for: a literal, a variable, or what computes it."""

    device: str
    frame: FailingFrame
    node: ast.AST

    @property
    def is_handed_in(self) -> bool:
        """Return whether the code is a parameter of its function."""
        name = variable(self.node)
        return bool(name) and name in parameters(self.frame.body) and not self.frame.bindings(name)

    def is_named_by(self, node: ast.AST) -> bool:
        return self.device in (*devices_named(self.frame, node), plain(node, self.frame.scope()))


def asked_device(frames: Sequence[FailingFrame], is_refused: Refused) -> AskedDevice | None:
    """Return the refused device of a line, in the outermost frame that passes it on; `frames` begin innermost."""
    found = None
    for frame in frames:
        known = found.device if found is not None else ""
        head = getattr(frame.expression, "items", None) or [frame.expression]  # of a `with` without the body
        asked = (each for code in head for each in _asked(frame, code, is_refused))
        found = next((each for each in asked if known in ("", each.device)), found)
        if found is not None and not found.is_handed_in:
            break
    return found


def devices_named(frame: FailingFrame, node: ast.AST) -> list[str]:
    """Return the devices that code names: a text, a `torch.device`, a number in a device position, a list."""
    value = worth(node, frame.scope())
    values = value if type(value) in (list, tuple) else [value]
    if all(type(each) is int for each in values):
        kind = _kind_of_number(frame, node)
        return [f"{kind}:{each}" for each in values if kind]
    return [device for each in values if (device := kinds.device_named_by(each))]


def accelerator(frame: FailingFrame) -> str:
    """Return the kind of device that a number alone stands for."""
    return next(iter(frame.moment.queries.snapshot.objects.accelerators), "cuda").partition(":")[0]


def _asked(frame: FailingFrame, code: ast.AST, is_refused: Refused) -> Iterator[AskedDevice]:
    mapped_from = {key for each in nodes_of(ast.Dict, code) for key in each.keys}
    for node in ast.walk(code):
        if node not in mapped_from:
            yield from (AskedDevice(each, frame, node) for each in devices_named(frame, node) if is_refused(each))


def _kind_of_number(frame: FailingFrame, node: ast.AST) -> str:
    """Return the kind of device for a number in this position; empty if it is no device."""
    parent = frame.source.parent(node)
    match parent:
        case ast.keyword(arg=str() as word):
            return accelerator(frame) if word in ("device", "output_device", *DEVICE_LISTS) else ""
        case ast.List() | ast.Tuple():
            return _kind_of_number(frame, parent)
        case ast.Call(args=[_, second, *_]) if second is node:
            kind = plain(parent.args[0], frame.scope()) if called_name(parent) == "device" else None
            return kind if isinstance(kind, str) else accelerator(frame) if called_name(parent) in DEVICE_LISTS else ""
        case ast.Call(args=[first, *_]) if first is node:
            full = full_name(parent.func, frame.source, frame.variables)
            return accelerator(frame) if takes_number(called_name(parent), full) else ""
    return ""


# Who said which device.

_Origin = tuple[Code, ast.AST]
MOST_STEPS: Final = 4
"""From variable to variable, back to where a device was named."""


def who_asked(asked: AskedDevice, failing: FailingFrame) -> tuple[Line, ...]:
    """Return the line that says which device, if it is not the one that fails."""
    code, given = giver(asked, asked.node, MOST_STEPS) or (asked.frame.code, asked.node)
    is_default = code.source.nearest(ast.arguments, given) is not None
    statement = given if is_default else code.source.statement(given)
    if statement is failing.source_node.statement:
        return ()
    return (Line(sentence("label.created"), code.site_of(statement)),)


def giver(asked: AskedDevice, node: ast.AST, steps: int) -> _Origin | None:
    """Return the code that first named a device, from name to name: `device = args.device`, and that was "cuda:1"."""
    given = _of_attribute(asked, node.value, node.attr) if type(node) is ast.Attribute else _of_variable(asked, node)
    origin = next(given, None) if steps else None
    if origin is None:
        return None
    names = (each for each in nodes_of(ast.expr, origin[1]) if type(each) in (ast.Name, ast.Attribute))
    earlier = (each for each in names if not same_code(each, node) and asked.is_named_by(each))
    return next(filter(None, (giver(asked, each, steps - 1) for each in earlier)), origin)


def _of_variable(asked: AskedDevice, node: ast.AST) -> Iterator[_Origin]:
    """Yield what a variable, or one that an entry is of, was given last, by a loop, by default."""
    frame, name = asked.frame, variable([*chain(node)][-1]) if type(node) in (ast.Name, ast.Subscript) else ""
    given = _values_of(frame, name)
    for iterated, _ in gone_through(frame.source, frame.source_node.node, name):
        given += [*_values_of(frame, variable(iterated)), iterated]
    if name in parameters(frame.body) and not frame.bindings(name):
        given += [value for each, value in defaults(frame.function) if each == name]
    yield from ((frame.code, each) for each in given)


def _values_of(frame: FailingFrame, name: str) -> list[ast.expr]:
    """Return what a function, or its file if the variable is none of the function's, gave a variable last."""
    statements = frame.bindings(name)
    if not statements and name in frame.scope().globals and name not in frame.scope().locals:
        statements = [each.statement for each in bindings(frame.source, frame.source.tree, name)]
    bound = (pair for statement in statements[-1:] for pair in given_by(frame.source, statement))
    return [each.value for path, each in bound if path == name]


def _of_attribute(asked: AskedDevice, owned: ast.expr, attribute: str) -> Iterator[_Origin]:
    """Yield what the class of an object, or the class itself, gives an attribute."""
    frame = asked.frame
    owner = evaluate(owned, frame.scope())
    yield from ((each.code, each.node) for each in assignments(frame.moment.queries, owner, attribute))
    kind = owner if issubclass(type(owner), type) else type(owner)
    for body in nodes_of(ast.ClassDef, frame.source.tree):
        if body.name == type.__dict__["__name__"].__get__(kind) and attribute in class_dict(kind):
            yield from ((frame.code, each.value) for each in bindings(frame.source, body, attribute))
