"""Which turn of a comprehension failed.

Since Python 3.12 a comprehension has no frame of its own (PEP 709), and an error takes its variables along. What it
goes through is there still: the turn that failed is one of which the frame below has a value, if any is; of those the
first whose expression mixes traits (devices, or dtypes). Where several are left and none mixes, it may be any.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from types import FrameType
from typing import Any, Final

from devtrace.source.defuse import COMPREHENSIONS, Position, position_in, unpacked
from devtrace.source.matching import assigned_names, called_name, owner_of
from devtrace.source.object_walk import may_lead
from devtrace.source.parsing import FunctionNode, Source
from devtrace.source.safe_values import MISSING, Scope, classes_of, evaluate, full_name_of, instance_dict
from devtrace.source.stand_ins import Frame

MOST_TURNS: Final = 64
ERRORS_DROP_THEM: Final = sys.version_info >= (3, 12)
"""Whether an error drops a comprehension's variables; before 3.12 no frame's source need be read for them."""
FRAMES: Final = dict(zip(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"), COMPREHENSIONS, strict=True))
"""Names of the frames that comprehensions have, where they have any."""
_VIEWS: Final[dict[str, Callable[[dict[Any, Any]], Iterable[Any]]]] = {
    "items": dict.items,
    "values": dict.values,
    "keys": dict.keys,
}
_SAME_ITEMS: Final = ("sorted", "reversed", "list", "tuple", "iter")


def lost_variables(
    frame: FrameType | Frame,
    at: tuple[Source, ast.AST],
    below: FrameType | Frame | None,
    trait_of: Callable[[Any], object],
) -> dict[str, Any]:
    """Return the variables that a frame's comprehensions had in the turn that failed; empty if that is not certain.

    A value without a trait, by `trait_of`, fits any other.
    """
    source, node = at
    parts = _parts_around(source, node, frame.f_code.co_name)
    if not parts:
        return {}
    scope = Scope.of(frame)
    possible = list(islice(turns(parts, scope), MOST_TURNS))
    values_below = {id(value) for value in below.f_locals.values() if may_lead(value)} if below is not None else set()
    possible = [turn for turn in possible if any(id(value) in values_below for value in turn.values())] or possible
    for turn in possible:
        values = (evaluate(part, scope.having(turn)) for part in ast.walk(node))
        if len({trait_of(value) for value in values if value is not MISSING and may_lead(value)} - {None, ""}) > 1:
            return turn
    return possible[0] if len(possible) == 1 else {}


def _parts_around(source: Source, node: ast.AST, frame: str) -> list[ast.comprehension]:
    """Return the `for ... in ...` parts around a node whose variables were in its frame, the outermost first."""
    lost: list[ast.comprehension] = []
    child, grandchild = node, node
    for outer in source.ancestors(node):
        if isinstance(outer, FunctionNode):
            break
        if isinstance(outer, COMPREHENSIONS) and outer is not node:
            parts = outer.generators
            index = next((place for place, part in enumerate(parts) if part is child), len(parts))
            is_iterated = index < len(parts) and grandchild is parts[index].iter
            if type(outer) is FRAMES.get(frame) and not (is_iterated and index == 0):
                break  # it has a frame of its own
            lost = [*parts[: index + (not is_iterated)], *lost]
        child, grandchild = outer, child
    return lost


def turns(parts: Sequence[ast.comprehension | ast.For], scope: Scope) -> Iterator[dict[str, Any]]:
    """Yield the variables of comprehensions, or loops, turn by turn, as far as look-ups tell."""
    if not parts:
        yield {}
        return
    target, iterated = parts[0].target, parts[0].iter
    names = {name: position for name in assigned_names(target) if (position := position_in(target, name)) is not None}
    columns = [list(_values_at(*unpacked(iterated, position), scope)) for position in names.values()]
    if not any(columns):  # the iterable is unknown or empty
        yield from turns(parts[1:], scope)
    for values in zip_longest(*columns, fillvalue=MISSING):
        bound = {name: value for name, value in zip(names, values, strict=True) if value is not MISSING}
        yield from ({**bound, **more} for more in turns(parts[1:], scope.having(bound)))


def _values_at(iterated: ast.expr, position: Position, scope: Scope) -> Iterator[Any]:
    """Yield the values of the part of a target at a position, turn by turn."""
    for value in contents(_iterated_object(iterated, scope)):
        for index in position:
            value = value[index] if type(value) in (tuple, list) and index < len(value) else MISSING
        yield value


def _iterated_object(iterated: ast.expr, scope: Scope) -> Any:
    """Return what a loop goes through: `x` itself for `sorted(x)`, the items of `d` for `d.items()`; else MISSING."""
    owner, name = owner_of(iterated), called_name(iterated)
    arguments = getattr(iterated, "args", [])
    if not name:
        return evaluate(iterated, scope)
    if owner is None and name in _SAME_ITEMS and arguments:
        return _iterated_object(arguments[0], scope)
    view = _VIEWS.get(name)
    whole = evaluate(owner, scope) if owner is not None and view is not None else MISSING
    return list(view(_table_of(whole))) if view is not None else MISSING


def contents(owner: Any) -> Iterator[Any]:
    """Yield the elements of a live list or dictionary, or of a container of modules or parameters."""
    has_keys = any(full_name_of(kind)[1].endswith(("dict", "Dict")) for kind in classes_of(type(owner)))
    yield from owner if type(owner) in (list, tuple) else _table_of(owner) if has_keys else _table_of(owner).values()


def _table_of(owner: Any) -> dict[Any, Any]:
    """Return the entries of a dictionary, or of a container of modules or parameters."""
    tables: Any = (instance_dict(owner).get(name) for name in ("_modules", "_parameters"))
    entries = owner if type(owner) is dict else next(filter(None, tables), {})
    return {key: value for key, value in entries.items() if value is not None or entries is owner}
