"""Stand-ins as rows of JSON, and back: what a saved case has of a program.

    data = to_rows({"net": net}, {"Shortage": Shortage})     # {"value": [17], "rows": [...]}
    of_rows(data, {"Shortage": Shortage})["net"]

A value is plain JSON, or in a list the number of a row. A row is `[kind, made of, items, members]`: an object is made
of values of rows before it, and is given items and members that may lead anywhere. Reading runs no code of a file's:
functions are `inert`, and whatever a row says is made by the functions here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from itertools import chain
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple

from devtrace.source import stand_ins
from devtrace.source.freeze import OF_CODE, inert, new_class, new_function, new_module, new_tensor, no_code
from devtrace.source.safe_values import FIELD, bases_of, class_dict, full_name_of, instance_dict
from devtrace.source.vocabulary import READ_OF_CLASSES

Records = Mapping[str, type]
"""Classes by name, of which a file may have objects: dataclasses and named tuples."""

_OF_FUNCTIONS: Final = ("__module__", "__defaults__", "__kwdefaults__")
_OF_CLASSES: Final = frozenset(("__module__", "__qualname__", "__file__", "__dict__", "__weakref__", "__doc__"))
"""What a class has of itself."""
_READ: Final = READ_OF_CLASSES | {"__dataclass_fields__"}
_KNOWN: Final[Mapping[str, Any]] = {
    "...": ...,
    "no_code": no_code,
    **{each.__name__: each for each in (object, dict, list, tuple, deque, ModuleType, stand_ins.Builtin)},
    **{each.__name__: each for each in stand_ins.OF_TORCH.values()},
}
_NAMES: Final = {id(each): name for name, each in _KNOWN.items()}


def _add_members(value: Any, items: list[Any], members: Mapping[str, Any]) -> None:
    instance_dict(value).update(members)  # type: ignore[attr-defined]


class _Kind(NamedTuple):
    """Parts, items and members of an object; `make` makes it of its parts, `fill` adds the rest."""

    parts: Callable[[Any], Iterable[Any]]
    make: Callable[..., Any]
    items: Callable[[Any], Iterable[Any]] = lambda _: ()
    members: Callable[[Any], Mapping[str, Any]] = lambda _: {}
    fill: Callable[[Any, list[Any], Mapping[str, Any]], None] = _add_members


def _only_class(value: Any) -> list[type]:
    return [type(value)]


def _parts_of_class(kind: type) -> list[Any]:
    members = class_dict(kind)
    return [*full_name_of(kind), members.get("__file__", ""), "__call__" in members, *bases_of(kind)]


def _make_class(module: str, name: str, file: str, is_called: bool, *bases: type) -> type:
    """Return a class. It has a `__call__` at once: a method of its object may be made before its own members."""
    kind = new_class(module, name, file, bases)
    if is_called:
        type.__setattr__(kind, "__call__", no_code)
    return kind


def _make_number(text: str) -> Any:
    return int(text, 16) if "x" in text else complex(text) if "j" in text else float(text)


def _pairs(flat: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _cells_of(function: FunctionType) -> Iterator[Any]:
    for index, cell in enumerate(function.__closure__ or ()):
        try:
            yield from (index, cell.cell_contents)
        except ValueError:  # not bound yet
            continue


def _fill_function(function: FunctionType, items: list[Any], members: Mapping[str, Any]) -> None:
    for index, value in _pairs(items):
        (function.__closure__ or ())[index].cell_contents = value
    for name, value in members.items():
        setattr(function, name, value)


def _fill_class(kind: type, items: list[Any], members: Mapping[str, Any]) -> None:
    for name, value in members.items():
        if name[:2] != "__" or name in _READ:  # Python would call the others
            type.__setattr__(kind, name, value)


def _fill_list(value: Any, items: list[Any], members: Mapping[str, Any]) -> None:
    (list if issubclass(type(value), list) else deque).extend(value, items)
    _add_members(value, [], members)


def _fill_dict(value: Any, items: list[Any], members: Mapping[str, Any]) -> None:
    dict.update(value, _pairs(items))
    _add_members(value, [], members)


_KINDS: Final[Mapping[str, _Kind]] = {
    "known": _Kind(lambda value: [_NAMES[id(value)]], _KNOWN.__getitem__),
    "number": _Kind(lambda value: [hex(value) if type(value) is int else repr(value)], _make_number),
    "range": _Kind(lambda value: [value.start, value.stop, value.step], range),
    "code": _Kind(
        lambda value: [getattr(value, name) for name in OF_CODE],
        lambda *parts: inert(SimpleNamespace(**dict(zip(OF_CODE, parts, strict=True)))),
    ),
    "frame": _Kind(lambda value: [value.f_code, value.f_locals, value.f_globals], stand_ins.Frame),
    "function": _Kind(
        lambda value: [value.__code__, value.__globals__, value.__name__],
        new_function,
        _cells_of,
        lambda value: {name: getattr(value, name) for name in _OF_FUNCTIONS} | value.__dict__,
        _fill_function,
    ),
    "method": _Kind(lambda value: [value.__func__, value.__self__], MethodType),
    "partial": _Kind(
        lambda value: [value.func, *value.args],
        partial,
        members=lambda value: value.keywords,
        fill=lambda made, _, members: made.keywords.update(members),
    ),
    "property": _Kind(lambda value: [value.fget], property),
    "staticmethod": _Kind(lambda value: [value.__func__], staticmethod),
    "classmethod": _Kind(lambda value: [value.__func__], classmethod),
    "field": _Kind(lambda value: [value.__reduce__()[1][0]], lambda number: FIELD(number, "")),
    "class": _Kind(
        _parts_of_class,
        _make_class,
        members=lambda value: {name: each for name, each in class_dict(value).items() if name not in _OF_CLASSES},
        fill=_fill_class,
    ),
    "named": _Kind(lambda value: [type(value), str(value)], lambda kind, name: kind(name)),
    "tensor": _Kind(
        lambda value: [
            *(type(value), value._row, value._shape, value._device, value._dtype),
            *(value._needs_gradient, value._is_leaf),
        ],
        new_tensor,
        members=instance_dict,
    ),
    "module": _Kind(lambda value: [type(value), value.__name__], new_module, members=instance_dict),
    "tuple": _Kind(
        lambda value: [type(value), *tuple.__iter__(value)],
        lambda kind, *items: tuple.__new__(kind, items),
        members=instance_dict,
    ),
    "frozenset": _Kind(lambda value: value, lambda *items: frozenset(items)),
    "list": _Kind(_only_class, list.__new__, list.__iter__, instance_dict, _fill_list),
    "deque": _Kind(_only_class, deque.__new__, deque.__iter__, instance_dict, _fill_list),
    "dict": _Kind(
        _only_class, dict.__new__, lambda value: chain.from_iterable(dict.items(value)), instance_dict, _fill_dict
    ),
    "object": _Kind(_only_class, object.__new__, members=instance_dict),
}
_EXACT: Final[Mapping[type, str]] = {
    **dict.fromkeys((int, float, complex), "number"),
    **{kind: kind.__name__ for kind in (range, partial, property, staticmethod, classmethod, frozenset)},
    CodeType: "code", FunctionType: "function", MethodType: "method", FIELD: "field", stand_ins.Frame: "frame",
    **dict.fromkeys((stand_ins.Device, stand_ins.Dtype, stand_ins.Generator, stand_ins.Builtin), "named"),
}  # fmt: skip
_BELOW: Final[Mapping[type, str]] = {
    type: "class", stand_ins.Tensor: "tensor", ModuleType: "module",
    tuple: "tuple", list: "list", deque: "deque", dict: "dict",
}  # fmt: skip


def to_rows(value: object, records: Records) -> dict[str, Any]:
    """Return a value, and all objects that it leads to, as rows."""
    rows: list[list[Any]] = []
    row_numbers: dict[int, int] = {}  # by id
    waiting: deque[tuple[Any, _Kind, list[Any]]] = deque()
    alive: list[object] = []  # objects whose ids are in use

    def encode(value: Any) -> Any:
        if _is_plain(value):
            return value
        row_number = row_numbers.get(id(value))
        return [add_row(value) if row_number is None else row_number]

    def add_row(value: Any) -> int:
        name = _kind_of(value, records)
        kind = _KINDS[name] if name in _KINDS else _kind_of_record(records[name])
        row = [name, [*map(encode, kind.parts(value))], [], {}]
        row_numbers[id(value)] = row_number = len(rows)
        rows.append(row)
        alive.append(value)
        waiting.append((value, kind, row))
        return row_number

    root = encode(value)
    while waiting:
        owner, kind, row = waiting.popleft()
        row[2] = [*map(encode, kind.items(owner))]
        row[3] = {name: encode(member) for name, member in kind.members(owner).items()}
        while not row[-1]:
            row.pop()
    return {"value": root, "rows": rows}


def of_rows(data: Mapping[str, Any], records: Records) -> Any:
    """Return the value that `to_rows` wrote; a record whose class is not there is None."""
    values: list[Any] = []

    def decode(code: Any) -> Any:
        return values[code[0]] if type(code) is list else code

    kinds = [_KINDS[name] if name in _KINDS else _kind_of_record(records.get(name)) for name, *_ in data["rows"]]
    for kind, row in zip(kinds, data["rows"], strict=True):
        values.append(kind.make(*map(decode, row[1] if len(row) > 1 else ())))
    for value, kind, row in zip(values, kinds, data["rows"], strict=True):
        items, members = row[2] if len(row) > 2 else (), row[3] if len(row) > 3 else {}
        if items or members:
            kind.fill(value, [*map(decode, items)], {name: decode(member) for name, member in members.items()})
    return decode(data["value"])


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is int or kind is float:
        return bool(-(2**63) <= value < 2**63)  # no NaN either
    return value is None or kind is str or kind is bool


def _kind_of(value: Any, records: Records) -> str:
    kind = type(value)
    if id(value) in _NAMES:
        return "known"
    if records.get(kind.__name__) is kind:
        return kind.__name__
    if kind in _EXACT:
        return _EXACT[kind]
    stand_in_class = value if issubclass(kind, type) else kind
    if id(stand_in_class) not in _NAMES and "__file__" not in class_dict(stand_in_class):
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} is neither a stand-in nor a record")
    return next((name for base, name in _BELOW.items() if issubclass(kind, base)), "object")


def _kind_of_record(kind: Any) -> _Kind:
    """Return how objects of a data class are written, by field. A file of another version may have other fields."""
    names = [*getattr(kind, "_fields", ())] or [each.name for each in fields(kind)] if kind is not None else []

    def make(*flat: Any) -> Any:
        return kind(**{name: value for name, value in _pairs([*flat]) if name in names}) if kind is not None else None

    return _Kind(lambda value: chain.from_iterable((name, getattr(value, name)) for name in names), make)
