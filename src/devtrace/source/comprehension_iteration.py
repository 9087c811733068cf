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
    """Return the variables of a frame's comprehensions in the failing iteration.

    A value without a trait, by `trait_of`, fits any other.
    """
    source, node = at
    lost = _lost(source, node, frame.f_code.co_name)
    if not lost:
        return {}
    scope = Scope.of(frame)
    found = list(islice(turns(lost, scope), MOST_TURNS))
    given = {id(each) for each in below.f_locals.values() if may_lead(each)} if below is not None else set()
    found = [turn for turn in found if any(id(each) in given for each in turn.values())] or found
    for turn in found:
        values = (evaluate(each, scope.having(turn)) for each in ast.walk(node))
        if len({trait_of(each) for each in values if each is not MISSING and may_lead(each)} - {None, ""}) > 1:
            return turn
    return found[0] if len(found) == 1 else {}


def _lost(source: Source, node: ast.AST, frame: str) -> list[ast.comprehension]:
    """Return the parts of the comprehensions around a node that are bound there, in its frame: the outermost first."""
    found: list[ast.comprehension] = []
    inner, within = node, node
    for outer in source.ancestors(node):
        if isinstance(outer, FunctionNode):
            break
        if isinstance(outer, COMPREHENSIONS) and outer is not node:
            parts = outer.generators
            at = next((number for number, part in enumerate(parts) if part is inner), len(parts))
            is_iterated = at < len(parts) and within is parts[at].iter
            if type(outer) is FRAMES.get(frame) and not (is_iterated and at == 0):
                break
            found = [*parts[: at + (not is_iterated)], *found]
        inner, within = outer, inner
    return found


def turns(parts: Sequence[ast.comprehension | ast.For], scope: Scope) -> Iterator[dict[str, Any]]:
    """Yield the variables of comprehensions, or loops, in each iteration, as far as look-ups tell."""
    if not parts:
        yield {}
        return
    target, iterated = parts[0].target, parts[0].iter
    names = {name: where for name in assigned_names(target) if (where := position_in(target, name)) is not None}
    columns = [list(_items(*unpacked(iterated, where), scope)) for where in names.values()]
    if not any(columns):  # what it goes through cannot be known
        yield from turns(parts[1:], scope)
    for values in zip_longest(*columns, fillvalue=MISSING):
        bound = {name: value for name, value in zip(names, values, strict=True) if value is not MISSING}
        yield from ({**bound, **more} for more in turns(parts[1:], scope.having(bound)))


def _items(iterated: ast.expr, position: Position, scope: Scope) -> Iterator[Any]:
    """Yield the values of a target's part, iteration by iteration."""
    for each in contents(_gone_through(iterated, scope)):
        for index in position:
            each = each[index] if type(each) in (tuple, list) and index < len(each) else MISSING
        yield each


def _gone_through(iterated: ast.expr, scope: Scope) -> Any:
    owner, name = owner_of(iterated), called_name(iterated)
    given = getattr(iterated, "args", [])
    if not name:
        return evaluate(iterated, scope)
    if owner is None and name in _SAME_ITEMS and given:
        return _gone_through(given[0], scope)
    view = _VIEWS.get(name)
    whole = evaluate(owner, scope) if owner is not None and view is not None else MISSING
    return list(view(_parts(whole))) if view is not None else MISSING


def contents(owner: Any) -> Iterator[Any]:
    """Yield the elements of a live list or dictionary, or of a container of modules or parameters."""
    has_keys = any(full_name_of(kind)[1].endswith(("dict", "Dict")) for kind in classes_of(type(owner)))
    yield from owner if type(owner) in (list, tuple) else _parts(owner) if has_keys else _parts(owner).values()


def _parts(owner: Any) -> dict[Any, Any]:
    """Return what a dictionary, or a container of modules or parameters, holds by key."""
    tables: Any = (instance_dict(owner).get(name) for name in ("_modules", "_parameters"))
    found = owner if type(owner) is dict else next(filter(None, tables), {})
    return {key: each for key, each in found.items() if each is not None or found is owner}
