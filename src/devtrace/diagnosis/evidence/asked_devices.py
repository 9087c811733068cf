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
        """Return whether the code is a parameter of its function, which gives it no other value."""
        name = variable(self.node)
        return bool(name) and name in parameters(self.frame.body) and not self.frame.bindings(name)

    def is_named_by(self, node: ast.AST) -> bool:
        return self.device in (*devices_named(self.frame, node), plain(node, self.frame.scope()))


def asked_device(frames: Sequence[FailingFrame], is_refused: Refused) -> AskedDevice | None:
    """Return the refused device of a line, in the outermost frame that passes it on; `frames` begin innermost."""
    asked = None
    for frame in frames:
        device = asked.device if asked is not None else ""
        head = getattr(frame.expression, "items", None) or [frame.expression]  # of a `with` without the body
        refused = (each for code in head for each in _refused_devices(frame, code, is_refused))
        asked = next((each for each in refused if device in ("", each.device)), asked)
        if asked is not None and not asked.is_handed_in:
            break
    return asked


def devices_named(frame: FailingFrame, node: ast.AST) -> list[str]:
    """Return the devices that code names: a text, a `torch.device`, a number in a device position, a list."""
    value = worth(node, frame.scope())
    items = value if type(value) in (list, tuple) else [value]
    if all(type(item) is int for item in items):
        kind = _kind_of_number(frame, node)
        return [f"{kind}:{number}" for number in items if kind]
    return [device for item in items if (device := kinds.device_named_by(item))]


def accelerator(frame: FailingFrame) -> str:
    """Return the kind of device that a number alone stands for."""
    return next(iter(frame.moment.queries.snapshot.objects.accelerators), "cuda").partition(":")[0]


def _refused_devices(frame: FailingFrame, code: ast.AST, is_refused: Refused) -> Iterator[AskedDevice]:
    keys = {key for mapping in nodes_of(ast.Dict, code) for key in mapping.keys}  # `map_location={"cuda:1": "cpu"}`
    for node in ast.walk(code):
        if node not in keys:
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
    code, node = giver(asked, asked.node, MOST_STEPS) or (asked.frame.code, asked.node)
    is_default = code.source.nearest(ast.arguments, node) is not None  # of a parameter: its function is no statement
    statement = node if is_default else code.source.statement(node)
    if statement is failing.source_node.statement:
        return ()
    return (Line(sentence("label.created"), code.site_of(statement)),)


def giver(asked: AskedDevice, node: ast.AST, steps: int) -> _Origin | None:
    """Return the code that first named a device, from name to name: `device = args.device`, and that was "cuda:1"."""
    values = _of_attribute(asked, node.value, node.attr) if type(node) is ast.Attribute else _of_variable(asked, node)
    origin = next(values, None) if steps else None
    if origin is None:
        return None
    names = (name for name in nodes_of(ast.expr, origin[1]) if type(name) in (ast.Name, ast.Attribute))
    earlier = (name for name in names if not same_code(name, node) and asked.is_named_by(name))
    return next(filter(None, (giver(asked, name, steps - 1) for name in earlier)), origin)


def _of_variable(asked: AskedDevice, node: ast.AST) -> Iterator[_Origin]:
    """Yield the code of the values of `x`, also for `x[0]`: its last assignment, a loop over it, a default."""
    frame, name = asked.frame, variable([*chain(node)][-1]) if type(node) in (ast.Name, ast.Subscript) else ""
    values = _values_of(frame, name)
    for iterated, _ in gone_through(frame.source, frame.source_node.node, name):
        values += [*_values_of(frame, variable(iterated)), iterated]
    if name in parameters(frame.body) and not frame.bindings(name):
        values += [value for parameter, value in defaults(frame.function) if parameter == name]
    yield from ((frame.code, value) for value in values)


def _values_of(frame: FailingFrame, name: str) -> list[ast.expr]:
    """Return the values in the last assignment of a variable: of the function's, else of a global in its file."""
    statements = frame.bindings(name)
    if not statements and name in frame.scope().globals and name not in frame.scope().locals:
        statements = [binding.statement for binding in bindings(frame.source, frame.source.tree, name)]
    assigned = (pair for statement in statements[-1:] for pair in given_by(frame.source, statement))
    return [binding.value for path, binding in assigned if path == name]


def _of_attribute(asked: AskedDevice, owner_code: ast.expr, attribute: str) -> Iterator[_Origin]:
    """Yield the code of the values of `self.device`, or of `Config.device`: what methods or the class body assign."""
    frame = asked.frame
    owner = evaluate(owner_code, frame.scope())
    yield from ((value.code, value.node) for value in assignments(frame.moment.queries, owner, attribute))
    kind = owner if issubclass(type(owner), type) else type(owner)
    for body in nodes_of(ast.ClassDef, frame.source.tree):
        if body.name == type.__dict__["__name__"].__get__(kind) and attribute in class_dict(kind):
            yield from ((frame.code, binding.value) for binding in bindings(frame.source, body, attribute))
