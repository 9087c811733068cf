"""Makes stand-ins of a program's objects: the only code that looks at live ones for a diagnosis.

    freezer = Freezer(row_of, mentioned={"net", "scale"})
    net = freezer.of(net)
    freezer.fill()

What an explanation may need is kept: classes, attributes, items, numbers, devices, dtypes, functions by file and line.
No text is kept but what names a device, a key or an attribute, or stands in the source; and no tensor's values. Of a
class or a module that is not the user's only those members are kept that the source mentions.

No code of anybody's runs, as long as the caller is quiet. Members come from dictionaries and C descriptors. Of the
methods that Python calls by itself a stand-in's class has few, and these, like all its functions, are `inert`.
"""

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

from devtrace.source.kinds import file_of, is_of_program
from devtrace.source.object_walk import READ_OF_MODULES, beside_torchs, is_contents, is_tensor
from devtrace.source.safe_values import FIELD, bases_of, class_dict, classes_of, code_in, full_name_of, instance_dict
from devtrace.source.stand_ins import OF_TORCH, Builtin, Device, Dtype, Generator
from devtrace.source.user_code import owner_of
from devtrace.source.vocabulary import READ_OF_CLASSES, kinds, torch_name

MOST_OBJECTS: Final = 60_000
MOST_DEPTH: Final = 12
MOST_PLAIN: Final = 1_000
"""Items that are kept of a list or dictionary of numbers and texts."""
LONGEST_DEVICE: Final = 30
"""Characters of a text that names a device, rightly or not: `cuda-0`."""
HIDDEN: Final = "..."
"""In place of a text of the user's."""

_PLAIN: Final = frozenset(map(id, (bool, int, float, complex, type(None), type(Ellipsis), range)))
"""Classes by their ids: a metaclass would be asked for a hash."""
_CONTAINERS: Final = (dict, list, deque, tuple)
_SAME: Final = frozenset(map(id, (object, ModuleType, *_CONTAINERS)))
"""Those that stand for themselves."""
_FIELDS: Final = ("__dataclass_fields__", "_fields")
_NAMED: Final = (Device, Dtype, Generator)


def no_code() -> None:
    """Stand for the body of a function."""


class Freezer:
    """`mentioned`: the names and texts in the source. `row_of`: a tensor's row in the trace, else None."""

    def __init__(self, row_of: Callable[[object], int | None], mentioned: Collection[str], most: int = 0) -> None:
        self._most, self._most_depth = most or MOST_OBJECTS, most or MOST_DEPTH
        self.live: dict[int, object] = {}  # by the id of its stand-in
        self.keys: set[str] = set()  # texts that are keys of a dictionary
        self._row_of = row_of
        self._mentioned = mentioned
        self._known: dict[int, Any] = {}  # stand-ins, by the id of the object
        self._codes: dict[int, CodeType] = {}  # without instructions, by the id of the code
        self._alive: list[object] = []  # objects whose ids are in use
        self._waiting: deque[tuple[Any, Any, int]] = deque()  # objects, their stand-ins to fill, their depths
        self._containers: dict[int, Any] = {}  # by the id of a class
        self._modules: list[tuple[dict[str, Any], Mapping[str, Any]]] = []  # dictionaries to fill, with live names

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return the stand-in of an object, to which `fill` gives its contents."""
        kind = type(value)
        if id(kind) in _PLAIN:
            return value
        if kind is str:
            is_device = len(value) <= LONGEST_DEVICE and value.lower().startswith(kinds())
            return value if not value or is_device or value in self._mentioned else HIDDEN
        stand_in = self._known.get(id(value))
        return self._new_stand_in(kind, value, depth) if stand_in is None else stand_in

    def code(self, code: CodeType) -> CodeType:
        """Return a code object with the names and the place of another, and without its instructions."""
        inert_code = self._codes.get(id(code))
        if inert_code is None:
            self._alive.append(code)
            inert_code = self._codes[id(code)] = inert(code)
        return inert_code

    def namespace(self, names: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
        """Return the dictionary for a module's names, to which `fill` adds them all; without `whole` it stays empty."""
        stand_ins: dict[str, Any] | None = self._known.get(id(names))
        if stand_ins is None:
            stand_ins = self._store(names, {})
            if whole:
                self._modules.append((stand_ins, names))
        return stand_ins

    def fill(self) -> None:
        """Give the stand-ins their contents, the nearest ones first, and names of modules last."""
        self._fill()
        for stand_ins, names in self._modules:  # grows as functions of other modules are found
            stand_ins.update((key, self.of(value, 1)) for key, value in list(names.items()) if type(key) is str)
            self._fill()

    def _fill(self) -> None:
        while self._waiting and len(self._known) < self._most:
            value, stand_in, depth = self._waiting.popleft()
            base = self._container(type(value))
            if base is dict:
                self._fill_dict(value, stand_in, depth)
            elif base in (list, deque):
                items = _items_to_keep(base.__iter__(value), base.__len__(value))
                base.extend(stand_in, (self.of(item, depth) for item in items))
            if type(value) is not base:
                self._fill_object(value, stand_in, depth)

    def _fill_dict(self, value: Any, stand_in: Any, depth: int) -> None:
        for key, item in _items_to_keep(dict.items(value), dict.__len__(value)):
            if type(key) is str:
                self.keys.add(key)
            dict.__setitem__(stand_in, key if type(key) is str else self.of(key, depth), self.of(item, depth))

    def _fill_object(self, value: Any, stand_in: Any, depth: int) -> None:
        members: Any = instance_dict(stand_in)
        members.update((name, self.of(member, depth)) for name, member in _slot_values(value))
        stored = instance_dict(value)
        is_imported, is_module = issubclass(type(value), ModuleType), "_modules" in stored and "_parameters" in stored
        for name, member in (*beside_torchs(stored), *_of_nn_module(stored)) if is_module else list(stored.items()):
            if type(name) is str and (not is_imported or name in self._mentioned):
                members[name] = self.of(member, depth)

    def _store(self, value: object, stand_in: Any) -> Any:
        self._known[id(value)] = stand_in
        self._alive.append(value)
        return stand_in

    def _container(self, kind: type) -> Any:
        """Return the container of Python's that a class is, or inherits from; else `object`."""
        base = self._containers.get(id(kind))
        if base is None:
            base = next((base for base in _CONTAINERS if issubclass(kind, base)), object)
            self._containers[id(kind)] = base
        return base

    def _fill_later(self, value: Any, stand_in: Any, depth: int) -> Any:
        if depth < self._most_depth and is_of_program(value, is_variable=not depth):  # else it stays empty
            self._waiting.append((value, stand_in, depth + 1))
        return self._store(value, stand_in)

    def _new_stand_in(self, kind: type, value: Any, depth: int) -> Any:
        """Return a new stand-in for an object of a kind; its contents are filled in later."""
        if kind is dict or kind is list:  # of these a program has the most
            return self._fill_later(value, kind(), depth)
        if is_tensor(value):
            return self._fill_later(value, self._freeze_tensor(kind, value), depth)
        if issubclass(kind, type):
            return self.class_of(value)
        if (make := _MAKERS.get(id(kind))) is not None:
            return make(self, value, depth)
        stand_in_class = self.class_of(kind)
        if stand_in_class in _NAMED:
            return self._store(value, stand_in_class(str(value.device if stand_in_class is Generator else value)))
        base = self._container(kind)
        if base is tuple:
            items = islice(tuple.__iter__(value), MOST_PLAIN if depth < 2 * MOST_DEPTH else 0)
            return self._store(value, tuple.__new__(stand_in_class, (self.of(item, depth + 1) for item in items)))
        if issubclass(kind, ModuleType):
            module = new_module(stand_in_class, str(instance_dict(value).get("__name__")))
            module.__file__ = str(instance_dict(value).get("__file__") or "")
            return self._fill_later(value, module, depth)
        return self._fill_later(value, base.__new__(stand_in_class), depth)

    def _freeze_tensor(self, kind: type, value: Any) -> Any:
        row = self._row_of(value)
        tensor = new_tensor(self.class_of(kind), -1 if row is None else row, *described(value))
        self.live[id(tensor)] = value
        return tensor

    # Functions and what is made of them.

    def _freeze_function(self, value: FunctionType, depth: int) -> Any:
        file = value.__globals__.get("__file__")  # a notebook's names have none
        names = self.namespace(value.__globals__, whole=type(file) is not str or owner_of(file) == "user")
        function = self._store(value, new_function(self.code(value.__code__), names, value.__name__))
        function.__module__ = str(value.__module__)
        for cell, live_cell in zip(function.__closure__ or (), value.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self.of(live_cell.cell_contents, depth + 1)
            except ValueError:  # not bound yet
                continue
        function.__defaults__ = tuple(self.of(default, depth + 1) for default in value.__defaults__ or ()) or None
        function.__kwdefaults__ = {key: self.of(word, depth + 1) for key, word in (value.__kwdefaults__ or {}).items()}
        if "__wrapped__" in value.__dict__:
            function.__dict__["__wrapped__"] = self.of(value.__dict__["__wrapped__"], depth + 1)
        return function

    def _callable(self, value: Any, depth: int) -> Any:
        stand_in = self.of(value, depth + 1)
        return stand_in if callable(stand_in) else no_code

    def _freeze_method(self, value: MethodType, depth: int) -> Any:
        return self._store(value, MethodType(self._callable(value.__func__, depth), self.of(value.__self__, depth + 1)))

    def _freeze_partial(self, value: partial[Any], depth: int) -> Any:
        args = (self.of(arg, depth + 1) for arg in value.args)
        words = {key: self.of(word, depth + 1) for key, word in value.keywords.items()}
        return self._store(value, partial(self._callable(value.func, depth), *args, **words))

    def _freeze_property(self, value: property, depth: int) -> Any:
        return self._store(value, property(self._callable(value.fget, depth)))

    def _freeze_wrapper(self, value: Any, depth: int) -> Any:
        return self._store(value, type(value)(self._callable(value.__func__, depth)))

    def _freeze_builtin(self, value: Any, depth: int) -> Any:
        return self._store(value, Builtin(torch_name(value)))

    # Classes.

    def class_of(self, kind: type) -> Any:
        """Return the class of stand-ins for a class: of the same name, and below the stand-ins for its bases."""
        if id(kind) in _SAME:
            return kind
        known = self._known.get(id(kind))
        if known is not None:
            return known
        names = full_name_of(kind)
        if names in OF_TORCH:
            return self._store(kind, OF_TORCH[names])
        module, name = names
        bases = tuple(dict.fromkeys(map(self.class_of, bases_of(kind)))) or (object,)
        file = file_of(kind)
        stand_in = self._store(kind, new_class(module, name, file, bases))
        code = code_in(kind)  # no module tells the file of a notebook's class
        defining_file = file or (code.co_filename if code is not None else "")
        self._fill_class(kind, stand_in, is_whole=owner_of(defining_file) == "user")
        return stand_in

    def _fill_class(self, kind: type, stand_in: type, *, is_whole: bool) -> None:
        """Add the members that are read. A subclass of `dict` or the like keeps Python's methods, which read it."""
        base = self._container(kind)
        of_python = frozenset(dir(base)) if base is not object else frozenset[str]()
        for name, member in list(class_dict(kind).items()):
            if name in _FIELDS and (type(member) is dict or type(member) is tuple):  # only the names
                type.__setattr__(stand_in, name, type(member)(dict.fromkeys(member)))
                continue
            is_wanted = is_whole or name in self._mentioned or is_contents(member)
            is_read = name in READ_OF_CLASSES or (name[:2] != "__" and name not in of_python and is_wanted)
            if is_read and type(member) is not MemberDescriptorType:  # each object has its own value
                type.__setattr__(stand_in, name, member if type(member) is FIELD else self.of(member, 1))


_MAKERS: Final[Mapping[int, Callable[[Freezer, Any, int], Any]]] = {
    id(FunctionType): Freezer._freeze_function,
    id(MethodType): Freezer._freeze_method,
    id(partial): Freezer._freeze_partial,
    id(property): Freezer._freeze_property,
    id(staticmethod): Freezer._freeze_wrapper,
    id(classmethod): Freezer._freeze_wrapper,
    id(BuiltinFunctionType): Freezer._freeze_builtin,
    id(MethodDescriptorType): Freezer._freeze_builtin,
}


OF_CODE: Final = (
    "co_name", "co_qualname", "co_filename", "co_firstlineno", "co_varnames", "co_argcount", "co_posonlyargcount",
    "co_kwonlyargcount", "co_names", "co_freevars", "co_flags",
)  # fmt: skip
"""What is kept of a code object: names, and the place."""


def inert(code: Any) -> CodeType:
    """Return code that does nothing, with the names and the place of other code."""
    fields = {name: getattr(code, name) for name in OF_CODE}
    return no_code.__code__.replace(co_nlocals=len(code.co_varnames), **fields)


def new_class(module: str, name: str, file: str, bases: tuple[type, ...]) -> type:
    """Return a class of stand-ins, without members."""
    members = {"__module__": module, "__qualname__": name, "__file__": file}
    try:
        return type(name.rpartition(".")[2], bases, members)
    except TypeError:  # classes written in C that do not go together
        return type(name.rpartition(".")[2], (object,), members)


def new_function(code: CodeType, names: dict[str, Any], name: str) -> FunctionType:
    """Return a function whose closure is still empty."""
    return FunctionType(code, names, name, None, tuple(CellType() for _ in code.co_freevars))


def new_module(kind: Any, name: str) -> Any:
    module = ModuleType.__new__(kind)
    ModuleType.__init__(module, name)
    return module


def new_tensor(kind: Any, row: int, shape: tuple[int, ...], device: str, dtype: str, needs: bool, leaf: bool) -> Any:
    tensor = object.__new__(kind)
    tensor._row, tensor._shape, tensor._device, tensor._dtype = row, shape, device, dtype
    tensor._needs_gradient, tensor._is_leaf = needs, leaf
    return tensor


def accelerators() -> tuple[str, ...]:
    """Return the accelerators that this process has, simulated ones too."""
    torch = sys.modules["torch"]
    if torch.cuda.is_available():
        return tuple(f"cuda:{index}" for index in range(torch.cuda.device_count()))
    with suppress(AttributeError, TypeError, RuntimeError):  # of a torch that cannot say
        device = torch.accelerator.current_accelerator(check_available=True)
        return () if device is None else tuple(f"{device.type}:{n}" for n in range(torch.accelerator.device_count()))
    return ()


def described(tensor: Any) -> tuple[tuple[int, ...], str, str, bool, bool]:
    """Return a tensor's shape, device and dtype, whether it requires a gradient, and whether it is a leaf."""
    kind = sys.modules["torch"].Tensor
    names = ("device", "shape", "dtype", "requires_grad", "is_leaf")
    device, shape, dtype, needs, leaf = (getattr(kind, name).__get__(tensor) for name in names)
    return tuple(map(int, shape)), str(device), str(dtype).removeprefix("torch."), needs, leaf


def _items_to_keep(items: Iterable[Any], count: int) -> Iterator[Any]:
    """Yield the items of a list or dictionary; of a long one of numbers or texts only the first `MOST_PLAIN`."""
    beginning = list(islice(items := iter(items), MOST_PLAIN))
    yield from beginning
    if count > MOST_PLAIN and id(type(beginning[-1])) not in (*_PLAIN, id(str)):
        yield from islice(items, MOST_OBJECTS)


def _of_nn_module(stored: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield those of nn.Module's own attributes that devtrace reads, without empty tables of hooks."""
    for name in READ_OF_MODULES:
        is_empty = issubclass(type(stored.get(name)), dict) and not dict.__len__(stored[name])
        if name in stored and not (is_empty and name[:8] == "_forward"):
            yield name, stored[name]


def _slot_values(value: Any) -> Iterator[tuple[str, Any]]:
    for klass in classes_of(type(value)):
        for name, member in class_dict(klass).items() if "__slots__" in class_dict(klass) else ():
            if type(member) is MemberDescriptorType and name[:2] != "__":
                try:
                    yield name, member.__get__(value, type(value))
                except AttributeError:  # an empty one
                    continue
