"""The members of live objects, found without running a line of anybody's code.

    for reference in members(model):
        reference.text, reference.value        # '.table', the tensor

No property, `__getattr__`, `__iter__`, `__eq__` or metaclass of the user's runs here. Members come from dictionaries
and C descriptors; classes are compared by `is`, by id or by `issubclass(type(x), T)`. torch is not imported:
a module is an object with the tables that nn.Module registers its parts in.
"""

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import islice
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any, Final, Literal, NamedTuple

from devtrace.source.safe_values import class_dict, classes_of, instance_dict
from devtrace.source.stand_ins import Tensor

ReferenceKind = Literal["variable", "closure", "global", "attribute", "module", "parameter", "buffer", "item", "state"]

TABLES: Final[dict[str, ReferenceKind]] = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
_BEFORE: Final = ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs")
_AFTER: Final = ("_forward_hooks", "_forward_hooks_with_kwargs")
READ_OF_MODULES: Final = (*TABLES, *_BEFORE, *_AFTER, "training")
"""What is read of nn.Module's own attributes."""
_ATOMS: Final = frozenset(
    id(kind)
    for kind in (
        *(int, float, bool, complex, str, bytes, bytearray, type(None), type(Ellipsis), slice, range),
        *(BuiltinFunctionType, CodeType, FrameType, TracebackType),
    )
)
_BARE: Final = frozenset(id(kind) for kind in (dict, list, tuple, deque))  # whose instances have no attributes
_SEQUENCES: Final = (tuple, list, deque)
_CONTAINERS: Final = frozenset(id(kind) for kind in (dict, list, tuple))
_KEYS: Final = frozenset(id(kind) for kind in (str, int, bool))  # of a dictionary, and of the parts of such a key


class Reference(NamedTuple):
    """One step to an object: `owner.key` or `owner[key]`. A variable has no owner but the number of its frame."""

    owner: Any
    kind: ReferenceKind
    key: Any
    value: Any
    frame: int = -1

    @property
    def text(self) -> str:
        """Return the step as source writes it: `.table`, `["mask"]`, `[0]`; `:name` for what a function closed over."""
        if self.owner is None:
            return str(self.key)
        if self.kind == "item":
            is_plain = type(self.key) is str and not set(self.key) & set('"\\\n')
            return f'["{self.key}"]' if is_plain else f"[{self.key!r}]"
        if self.kind == "state":  # the key is a tensor, which only its own names can tell
            return "[...]"
        return f":{self.key}" if self.kind == "closure" else f".{self.key}"


def may_lead(value: object) -> bool:
    """Return whether a value can lead to tensors: no number, text or imported module can."""
    return id(type(value)) not in _ATOMS and not issubclass(type(value), ModuleType)


def is_tensor(value: object) -> bool:
    torch, kind = sys.modules.get("torch"), type(value)
    return issubclass(kind, Tensor) or (torch is not None and issubclass(kind, torch.Tensor))


def items_of(value: object) -> list[Any]:
    """Return the items of a plain list, tuple or dictionary; nothing for anything else."""
    if type(value) is dict:
        return list(value.values())
    return list(value) if type(value) in (list, tuple) else []  # type: ignore[call-overload]


def members(owner: Any, most: int | None = None) -> Iterator[Reference]:
    """Yield every step on from an object: to what it stores, and to what its class, slots or closure hold for it.

    Of a list or a dictionary with more items than `most` only so many are looked at.
    """
    kind = type(owner)
    if kind is dict:
        return _steps_to_entries(owner, most)
    if id(kind) in _BARE:
        return _steps_to_items(kind, owner, most)
    return _steps_into_closure(owner) if kind is FunctionType else _steps_from_object(owner, most)


def _steps_from_object(owner: Any, most: int | None) -> Iterator[Reference]:
    if type(owner) is MethodType:
        yield Reference(owner, "attribute", "__self__", owner.__self__)
    elif type(owner) is partial:
        yield Reference(owner, "attribute", "keywords", owner.keywords)
        yield Reference(owner, "attribute", "args", owner.args)
    else:
        yield from stored(owner, most)
        if not issubclass(type(owner), (tuple, ModuleType)):
            yield from _steps_through_class(owner)


def stored(owner: Any, most: int | None = None) -> Iterator[Reference]:
    """Yield the steps to an object's own contents: items (the first `most`), registered parts, attributes."""
    kind = type(owner)
    if issubclass(kind, dict):
        yield from _steps_to_entries(owner, most)
    elif issubclass(kind, _SEQUENCES):
        yield from _steps_to_items(next(base for base in _SEQUENCES if issubclass(kind, base)), owner, most)
    if id(kind) not in _BARE:
        yield from _steps_to_attributes(owner)


def registered(module: Any, path: str = "", depth: int = 50) -> Iterator[tuple[str, Any]]:
    """Yield the tensors that `.to()` of a module moves, with their paths below it."""
    for reference in stored(module):
        if reference.kind in ("parameter", "buffer") and is_tensor(reference.value):
            yield f"{path}{reference.key}", reference.value
        elif reference.kind == "module" and depth:
            yield from registered(reference.value, f"{path}{reference.key}.", depth - 1)


def hooks_of(module: Any, *, before: bool) -> Iterator[tuple[Any, bool]]:
    """Yield the hooks that run before a module's forward, or after it, and whether each is given its keywords too."""
    stored: Any = instance_dict(module)
    table, with_words = (stored.get(name) or {} for name in (_BEFORE if before else _AFTER))
    yield from ((hook, key in with_words) for key, hook in list(table.items()))


def states_of(optimizer: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield `(parameter, "exp_avg", tensor)` for each tensor that an optimizer keeps for one of its parameters."""
    states: Any = instance_dict(optimizer).get("state")
    for parameter, state in list(dict.items(states)) if issubclass(type(states), dict) else ():
        for key, value in list(dict.items(state)) if issubclass(type(state), dict) else ():
            if is_tensor(value):
                yield parameter, key, value


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """Return an optimizer's groups of parameters, each with its options."""
    groups = instance_dict(optimizer).get("param_groups")
    return [group for group in groups if issubclass(type(group), dict)] if type(groups) is list else []


def parameters_of(optimizer: Any) -> list[Any]:
    """Return the parameters that an optimizer steps."""
    lists = (dict.get(group, "params") for group in groups_of(optimizer))
    return [parameter for parameters in lists if type(parameters) is list for parameter in parameters]


def _steps_to_entries(owner: Any, most: int | None) -> Iterator[Reference]:
    for key, value in list(islice(dict.items(owner), most)):
        if may_lead(value):
            if id(type(key)) in _KEYS or (type(key) is tuple and all(id(type(part)) in _KEYS for part in key)):
                yield Reference(owner, "item", key, value)
            elif is_tensor(key):
                yield Reference(owner, "state", key, value)


def _steps_to_items(base: Any, owner: Any, most: int | None) -> Iterator[Reference]:
    """Yield the steps to a sequence's items; those of a named tuple by the names of its fields."""
    names = class_dict(type(owner)).get("_fields") if base is tuple else None
    for index, value in enumerate(islice(base.__iter__(owner), most)):
        if may_lead(value):
            if type(names) is tuple and index < len(names):
                yield Reference(owner, "attribute", names[index], value)
            else:
                yield Reference(owner, "item", index, value)


def _steps_to_attributes(owner: Any) -> Iterator[Reference]:
    """Yield the steps to an object's attributes, a module's registered parts first."""
    attributes = instance_dict(owner)
    is_module = "_modules" in attributes and "_parameters" in attributes
    for table, kind in TABLES.items() if is_module else ():
        entries: Any = attributes.get(table)
        for name, value in list(dict.items(entries)) if issubclass(type(entries), dict) else ():
            if may_lead(value):
                yield Reference(owner, kind, name, value)
    for name, value in beside_torchs(attributes) if is_module else list(attributes.items()):
        if type(name) is str and name[:2] != "__" and may_lead(value):
            yield Reference(owner, "attribute", name, value)


def beside_torchs(stored: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return a module's attributes without nn.Module's internal ones."""
    torchs, all_ = _internal_names(), list(stored.items())
    torchs_come_first = torchs.issuperset(islice(stored, len(torchs)))
    return all_[len(torchs) :] if torchs_come_first else [item for item in all_ if item[0] not in torchs]


def _internal_names() -> frozenset[str]:
    """Return nn.Module's internal attributes: its tables and hooks. A stand-in has those that are read."""
    torch = sys.modules.get("torch")
    return _attributes_of_new(torch.nn.Module) if torch is not None else frozenset(READ_OF_MODULES)


@cache
def _attributes_of_new(module: type) -> frozenset[str]:
    return frozenset(vars(module()))


def _steps_through_class(owner: Any) -> Iterator[Reference]:
    """Yield the steps to an object's slots, and to the containers and tensors of its classes, up to one of torch's."""
    for klass in classes_of(type(owner)):
        members = class_dict(klass)
        module = members.get("__module__")
        if type(module) is str and module.partition(".")[0] in ("torch", "builtins"):
            return
        for name, member in members.items():
            if type(member) is MemberDescriptorType:
                value = _slot_value(owner, member)
                if may_lead(value):
                    yield Reference(owner, "attribute", name, value)
            elif name[:2] != "__" and is_contents(member):
                yield Reference(owner, "attribute", name, member)


def is_contents(member: object) -> bool:
    """Return whether a member of a class is a container or a tensor, and no method or number."""
    return id(type(member)) in _CONTAINERS or is_tensor(member)


def _slot_value(owner: Any, member: MemberDescriptorType) -> Any:
    try:
        return member.__get__(owner, type(owner))
    except AttributeError:  # an empty one
        return None


def _steps_into_closure(function: FunctionType) -> Iterator[Reference]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield Reference(function, "closure", name, cell.cell_contents)
        except ValueError:  # not bound yet
            continue
