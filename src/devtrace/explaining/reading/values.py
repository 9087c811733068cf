"""Values of expressions: tensors as rows, live objects, sequences of such; and the runs in which they are read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import torch

from devtrace.explaining.stack import Stack, module_of_method
from devtrace.recording.columns import sites
from devtrace.source import parsing
from devtrace.source.defuse import Position
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope


@dataclass(eq=False, slots=True)
class ReadOp:
    """An op before the failed one. `depth`: the level of the stack in whose call it ran; for an old move `tick`.

    `module` is the one in whose call it ran, if no frame shows that; `owner` the one whose method has its line.
    `is_seen`: the hooks saw it; all others were read from the source. `is_confirmed`: what is there came of it.
    `is_open`: its dtype is not known; it has that of what was made of it. `line`: the one that the frame ran then.
    """

    name: str
    kind: int
    site: int
    inputs: list[int]
    row: int
    layout: int
    depth: int
    module: Any = None
    owner: Any = None
    tick: float = 0
    is_seen: bool = False
    is_confirmed: bool = False
    is_open: bool = False
    line: int = 0


@dataclass(eq=False, slots=True)
class TensorValue:
    """A tensor: a `live` one, or one that is gone, of which the source gives the device and the `op` that made it."""

    row: int
    device: str
    dims: int = 1
    op: ReadOp | None = None
    live: Any = None
    dtype: torch.dtype | None = None


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A live object, or a constant, that is no tensor; of an attribute or an item with what gave it its value."""

    value: Any
    definitions: Callable[[], Iterable[Definition]] = tuple


@dataclass(frozen=True, slots=True)
class Several:
    """A sequence or a dictionary that is gone, by its items; an item that is not known is None."""

    items: tuple[Value | None, ...]
    keys: tuple[Any, ...] = ()

    def item(self, key: Any) -> Value | None:
        if self.keys:
            return self.items[self.keys.index(key)] if key in self.keys else None
        is_index = type(key) is int and -len(self.items) <= key < len(self.items)
        return self.items[key] if is_index else None


Value = TensorValue | KnownValue | Several
Bound = dict[str, Value | None]
"""Arguments by parameter."""


def tensors_of(value: Value | None) -> Iterator[TensorValue]:
    """Yield the tensors of a value, those in sequences among them."""
    if isinstance(value, TensorValue):
        yield value
    elif isinstance(value, Several):
        for item in value.items:
            yield from tensors_of(item)


END: Final = 1 << 60
"""A line below all others: a function that has returned ran to its end."""


@dataclass(eq=False)
class Activation:
    """Names are looked up here. `line` is read now; a live frame stands at `now`, or a dead one at its END.

    `scope` has the variables of a live frame, `bound` what a dead one was given. `depth` is the level of the stack in
    whose call it ran. `owner` is the module whose method it is, or whose method called it; `module` the same once it
    has returned. `caller` is the user's line for code of a package.
    """

    source: Source
    body: ast.AST
    line: int
    depth: int
    globals: Mapping[str, Any]
    scope: Scope | None = None
    bound: Bound = field(default_factory=dict)
    caller: int = sites.NOWHERE
    module: Any = None
    owner: Any = None
    level: int = 0
    now: int = END

    @classmethod
    def of_file(cls, source: Source, known: Mapping[str, Any], level: int = 0) -> Activation:
        """Return a run that went through a whole file, with the globals that are known."""
        return cls(source, source.tree, END, 0, known, level=level)

    def at(self, line: int) -> Activation:
        """Return the same run, read at another line."""
        return replace(self, line=line, level=self.level + 1)

    def at_node(self, node: ast.AST) -> Activation:
        return self.at(self.source.span(node).line)

    @property
    def is_file(self) -> bool:
        return self.body is self.source.tree

    @property
    def is_readable(self) -> bool:
        """True for code of the user's or of a package's: not torch's."""
        return sites.files[self.source.file] in (sites.USER, sites.LIBRARY)


def run_at(stack: Stack, depth: int, trait: Callable[[Any], object]) -> Activation | None:
    """Return the live frame at a level of a stack; None without source."""
    level = stack.levels[depth]
    code = level.frame.f_code
    source, node = parsing.node_of(code, level.instruction)
    if source is parsing.NO_SOURCE:
        return None
    line = parsing.span_at(code, level.instruction).line
    body = source.function_of_code(code)
    if body is None and code.co_name != "<module>":
        body = source.function(node)  # for the frame of a comprehension
    callers = (caller for caller in reversed(stack.levels[:depth]) if caller.kind == sites.USER)
    return Activation(
        source,
        body or source.tree,
        line,
        depth,
        level.frame.f_globals,
        stack.scope(depth, trait),
        caller=next((sites.intern(caller.frame.f_code, caller.instruction) for caller in callers), sites.NOWHERE),
        owner=module_of_method(code, level.frame.f_locals),
        now=line,
    )


class Definition(NamedTuple):
    """An expression that gave something its value, where it ran.

    `is_source`: what it gave came out of it, whatever it is. `is_one_of_many`: others are as likely.
    `takes_former`: it reads what x was before, as `x.to(device)` for x, or `torch.cat([x, row])` do.
    `is_of_repetition`: it is below what is read, in a loop, and gave the value only if the loop had come round.
    """

    node: ast.expr
    position: Position
    activation: Activation
    is_source: bool = False
    is_one_of_many: bool = False
    takes_former: bool = False
    is_of_repetition: bool = False


def item_of(owner: ast.expr, key: Any) -> ast.expr:
    """Return the code of an item: `owner[key]`."""
    return ast.copy_location(ast.Subscript(value=owner, slice=ast.Constant(key), ctx=ast.Load()), owner)
