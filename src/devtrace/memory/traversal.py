"""What an object leads to where a program's memory is walked: containers, closures, objects of who uses torch."""

import gc
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import compress
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any, Final

from devtrace.recording.columns import sites
from devtrace.source.object_walk import is_tensor, may_lead, members
from devtrace.source.safe_values import class_dict, classes_of, instance_dict

_CACHED: Final = type(cache(lambda: None))
_SETS: Final = (set, frozenset)
_CONTAINERS: Final = frozenset(map(id, (dict, list, tuple, deque, *_SETS)))  # no metaclass is asked for a hash
_QUEUES: Final = frozenset(("_queue", "queue", "asyncio.queues", "collections", "concurrent.futures._base"))
_HOLDERS: Final = _QUEUES | {"argparse", "functools"}
"""Modules of Python's own whose objects have what a program puts there: a queue, a future, a namespace, a partial."""


def inside(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object leads to, with the text of the step: `losses`, not `losses[17]`, holds what a list has."""
    kind = type(value)
    if issubclass(kind, type):
        for name, attribute in list(class_dict(value).items()):
            if is_tensor(attribute) or type(attribute) in (list, dict, deque, *_SETS):
                yield f".{name}", attribute
    elif kind is _CACHED:
        yield from (("", result) for result in gc.get_referents(value) if may_lead(result))
    elif kind in _SETS:
        yield from (("", item) for item in list(value) if may_lead(item))
    elif class_dict(kind).get("__module__") in _QUEUES and not issubclass(kind, (dict, deque)):
        for inner in list(instance_dict(value).values()) or gc.get_referents(value):  # by no name of the user's
            if id(type(inner)) in _CONTAINERS:
                yield from inside(inner)
            elif is_tensor(inner):
                yield "", inner
    else:
        if issubclass(kind, dict):  # by whatever keys
            yield from (("", item) for item in list(dict.values(value)) if may_lead(item))
        has_no_names = kind is MethodType or issubclass(kind, tuple)  # a named tuple's fields are its items
        for reference in members(value):
            if reference.kind == "closure":
                yield reference.key, reference.value
            elif reference.kind not in ("item", "state") or not issubclass(kind, dict):
                yield "" if has_no_names or reference.kind == "item" else reference.text, reference.value


def in_containers(values: list[Any]) -> set[int]:
    """Return the ids of those values that are an item of some container other than `values`.

    `gc.get_referrers` compares each reference of the process with each value, which takes minutes for some thousands.
    """
    wanted_ids = set(map(id, values))
    contained_ids: set[int] = set()
    objects = gc.get_objects() if values else []
    for container in compress(objects, map(_CONTAINERS.__contains__, map(id, map(type, objects)))):
        items = container.values() if type(container) is dict else container
        if items and container is not values and not wanted_ids.isdisjoint(map(id, items)):
            contained_ids.update(wanted_ids.intersection(map(id, items)))
    return contained_ids


def may_enter(value: Any) -> bool:
    kind = type(value)
    is_of_python = kind in (FunctionType, MethodType, SimpleNamespace, _CACHED)
    if is_of_python or issubclass(kind, (dict, list, tuple, deque, *_SETS)):
        return True
    classes = classes_of(value if issubclass(kind, type) else kind)
    names = [name for each in classes if type(name := class_dict(each).get("__module__")) is str]
    return any(name != "builtins" and (name in _HOLDERS or _knows_torch(name)) for name in names)


@cache
def _knows_torch(module: str) -> bool:
    """Return whether a class is of the user's own code, or of a package's file that works with torch."""
    if module.partition(".")[0] == "devtrace":
        return False
    names = getattr(sys.modules.get(module), "__dict__", {})
    file = names.get("__file__")
    if type(file) is not str or sites.files[file] == sites.USER:
        return module not in sys.builtin_module_names
    return any(getattr(each, "__name__", "") == "torch" for each in list(names.values()))
