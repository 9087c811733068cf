"""What the user calls a tensor: every path of names that leads to it from the variables of the frames on the stack.

One walk over what the frames hold, without running a line of anybody's code; the only place of diagnosis that knows
torch's types. The walk notes for each object what holds it and by which step, so that a tensor's names in an inner
frame (`self.table`) cost nothing on top of its name in the outermost one (`model.positions.table`).
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

import torch

from devtrace.diagnosis.slugs import ReferenceKind
from devtrace.source.reading import instance_dict

MOST_OBJECTS: Final = 60_000
MOST_DEPTH: Final = 12
MOST_NAMES: Final = 12
_PLAIN: Final = (int, float, bool, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_LEAVES: Final = frozenset((*_PLAIN, torch._C.device, torch.dtype, torch.Size))
_SKIPPED: Final = (types.ModuleType, types.CodeType, types.FrameType, types.TracebackType, types.BuiltinFunctionType)
# What nn.Module keeps for itself.
_OWN: Final = frozenset(vars(torch.nn.Module())) - {"_parameters", "_buffers", "_modules"}
_TABLES: Final[dict[str, ReferenceKind]] = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
_DICTS: Final = (dict, OrderedDict, defaultdict)


class Reference(NamedTuple):
    """`owner` holds an object by `text` (`.table`, `["mask"]`), an optimizer's state by the tensor `key`.
    A variable has no owner but the number of its frame."""

    owner: Any
    text: str
    kind: ReferenceKind
    frame: int = -1
    key: Any = None


@dataclass(frozen=True)
class AccessPath:
    """One way to say an object: the holds from a variable to it, and the objects on the way, the named one last."""

    holds: tuple[Reference, ...]
    objects: tuple[Any, ...]
    text: str

    @property
    def frame(self) -> int:
        """The number of the frame whose variable it starts from; 0 is the innermost."""
        return self.holds[0].frame

    @property
    def last(self) -> Reference:
        return self.holds[-1]

    def modules(self) -> list[tuple[int, torch.nn.Module]]:
        """The modules on the way, each with its place in `objects`, outermost first."""
        return [(i, value) for i, value in enumerate(self.objects) if is_module(value)]

    def registered_from(self, place: int) -> bool:
        """Whether `.to()` of the module at a place reaches what is named."""
        return all(hold.kind in ("module", "parameter", "buffer") for hold in self.holds[place + 1 :])

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Lowest for the best name: not by an optimizer's groups, nor a loose list, from the outermost frame, short."""
        optimizer = any(is_optimizer(value) for value in self.objects[:-1])
        state = any(hold.kind == "state" for hold in self.holds)
        return 2 * (optimizer and not state) + self.listed, -self.frame, len(self.holds), len(self.text)

    @property
    def listed(self) -> bool:
        """Whether it is, or is in, an item of a list that no module holds: `trainable[0]`, `memory[12].action`."""
        return any(_is_loose_item(hold, self.objects[:place]) for place, hold in enumerate(self.holds))


def _is_loose_item(hold: Reference, above: tuple[Any, ...]) -> bool:
    """Whether a step is into a list or tuple that no module holds: `trainable[0]`, but not `tower.stages[0]`."""
    listed = hold.kind == "item" and type(hold.owner) in (list, tuple, deque)
    return listed and not any(is_module(value) for value in above)


def is_tensor(value: object) -> bool:
    return issubclass(type(value), torch.Tensor)


def is_module(value: object) -> bool:
    return issubclass(type(value), torch.nn.Module)


def is_parameter(value: object) -> bool:
    return issubclass(type(value), torch.nn.Parameter)


def is_optimizer(value: object) -> bool:
    return issubclass(type(value), torch.optim.Optimizer)


def torch_answers() -> AbstractContextManager[object]:
    """Inside, a tensor's questions are answered by torch, not by what a subclass makes of them."""
    return torch._C.DisableTorchFunctionSubclass()


def seen(tensor: Any) -> tuple[str, tuple[int, ...], str]:
    """A tensor's device, shape and dtype."""
    device, shape, dtype = (getattr(torch.Tensor, name).__get__(tensor) for name in ("device", "shape", "dtype"))
    return str(device), tuple(map(int, shape)), str(dtype).removeprefix("torch.")


def stays_on_host(value: object) -> bool:
    """Whether what it holds belongs to the CPU: data sets and their loaders."""
    data = torch.utils.data
    return issubclass(type(value), (data.Dataset, data.DataLoader, data.Sampler))


# While devices are simulated, torch.Generator and torch.device are other classes than those of torch._C.
def is_generator(value: object) -> bool:
    return issubclass(type(value), torch._C.Generator)


def is_device(value: object) -> bool:
    return type(value) is torch._C.device


def place_of(value: object) -> str:
    """The device that a generator, a torch.device or a string of the user's says; empty when it says none."""
    if is_device(value):
        return str(value)
    if is_generator(value):
        return str(value.device)  # type: ignore[attr-defined]
    try:
        return str(torch.device(value)) if type(value) is str else ""
    except RuntimeError:
        return ""


@dataclass
class Walk:
    """What the variables of some frames (innermost first) hold, and by which steps."""

    frames: list[dict[str, tuple[Any, ReferenceKind]]]
    holders: dict[int, list[Reference]] = field(default_factory=dict)
    objects: dict[int, Any] = field(default_factory=dict)
    tensors: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        queue: deque[tuple[Any, int]] = deque()
        for number in reversed(range(len(self.frames))):
            for name, (value, step) in self.frames[number].items():
                self._hold(value, Reference(None, name, step, number), 0, queue)
        while queue and len(self.objects) < MOST_OBJECTS:
            owner, depth = queue.popleft()
            for value, text, step, key in held(owner):
                self._hold(value, Reference(owner, text, step, key=key), depth + 1, queue)

    def _hold(self, value: Any, hold: Reference, depth: int, queue: deque[tuple[Any, int]]) -> None:
        kind = type(value)
        if kind in _LEAVES or issubclass(kind, _SKIPPED):
            return
        key = id(value)
        known = self.holders.get(key)
        if known is not None:
            if len(known) < MOST_NAMES:
                known.append(hold)
            return
        self.holders[key] = [hold]
        self.objects[key] = value
        if issubclass(kind, torch.Tensor):
            self.tensors.append(value)
        elif depth < MOST_DEPTH and not _is_ours(kind):
            queue.append((value, depth))

    def names(self, value: object) -> list[AccessPath]:
        """All ways to say an object, best first."""
        found = list(self._up(value, (), (value,), set()))
        return sorted(found, key=lambda name: name.rank)[:MOST_NAMES]

    def _up(
        self, value: object, holds: tuple[Reference, ...], objects: tuple[Any, ...], over: set[int]
    ) -> Iterator[AccessPath]:
        if len(holds) > MOST_DEPTH or id(value) in over:
            return
        for hold in self.holders.get(id(value), ()):
            path = (hold, *holds)
            if hold.owner is None:
                yield AccessPath(path, objects, self.text(path))
            else:
                yield from self._up(hold.owner, path, (hold.owner, *objects), over | {id(value)})

    def text(self, holds: tuple[Reference, ...]) -> str:
        return "".join(self._text(hold) for hold in holds)

    def holds_of(self, owner: Any) -> Iterator[tuple[Any, Reference]]:
        """What an object holds, and how."""
        if owner is not None:
            yield from ((value, Reference(owner, text, step, key=key)) for value, text, step, key in held(owner))

    def held_by(self, owner: Any) -> Iterator[Any]:
        """The tensors that an object holds itself."""
        if not is_module(owner) and not is_optimizer(owner):
            yield from (value for value, *_ in held(owner) if is_tensor(value))

    def _text(self, hold: Reference) -> str:
        if hold.key is None:
            return hold.text
        keyed = self.names(hold.key)
        return f"[{keyed[0].text}]" if keyed else "[...]"


def _is_ours(kind: type) -> bool:
    """Whether it is an object of devtrace's, such as the recording: no way to say what is the user's."""
    expected_device = type.__dict__["__dict__"].__get__(kind).get("__module__")
    return type(expected_device) is str and expected_device.partition(".")[0] == "devtrace"


_Held = Iterator[tuple[Any, str, ReferenceKind, Any]]


def held(owner: Any) -> _Held:
    """What an object holds: value, the text that leads to it, the kind of step, the key if that is a tensor."""
    kind = type(owner)
    if kind in _DICTS:
        yield from _entries(owner)
    elif kind in (list, tuple, deque):
        for index, value in enumerate(owner):
            yield value, f"[{index}]", "item", None
    elif issubclass(kind, tuple):
        yield from _fields(owner)
    elif kind is types.FunctionType:
        yield from _closed_over(owner)
    elif kind is types.MethodType:
        yield owner.__self__, ".__self__", "attribute", None
    elif kind is functools.partial:
        yield from ((value, ".keywords" + _key(key), "item", None) for key, value in owner.keywords.items())
        yield from ((value, f".args[{index}]", "item", None) for index, value in enumerate(owner.args))
    elif issubclass(kind, torch.nn.Module):
        yield from _in_module(instance_dict(owner))
        for klass, name in _class_tensors(cast("Any", kind)):
            yield type.__dict__["__dict__"].__get__(klass)[name], f".{name}", "attribute", None
    elif issubclass(kind, dict):
        yield from _entries(owner)
        yield from _in_object(owner)
    else:
        yield from _in_object(owner)


def _entries(owner: dict[Any, Any]) -> _Held:
    for key, value in dict.items(owner):
        text = _key(key)
        if text:
            yield value, text, "item", None
        elif is_tensor(key):
            yield value, "", "state", key


def _key(key: Any) -> str:
    if type(key) is str:
        return f'["{key}"]'
    return f"[{key}]" if type(key) in (int, bool) else ""


def _fields(owner: Any) -> _Held:
    names = type(owner).__dict__.get("_fields")
    for index, value in enumerate(tuple.__iter__(owner)):
        if type(names) is tuple and index < len(names):
            yield value, f".{names[index]}", "attribute", None
        else:
            yield value, f"[{index}]", "item", None


def _closed_over(function: types.FunctionType) -> _Held:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield cell.cell_contents, f":{name}", "closure", None
        except ValueError:  # not bound yet
            continue


def _in_module(own: Any) -> _Held:
    for table, step in _TABLES.items():
        held = own.get(table)
        if type(held) in _DICTS:
            for name, value in dict.items(held):
                yield value, f".{name}", step, None
    for name, value in own.items():
        if name not in _OWN and name not in _TABLES and type(name) is str and not name.startswith("__"):
            yield value, f".{name}", "attribute", None


@functools.cache
def _class_tensors(kind: Any) -> tuple[tuple[type, str], ...]:
    """Tensors that a module's class holds: where and by which name."""
    classes = type.__dict__["__mro__"].__get__(kind)
    own = classes[: classes.index(torch.nn.Module)]
    tables = ((klass, type.__dict__["__dict__"].__get__(klass)) for klass in own)
    return tuple((klass, name) for klass, table in tables for name, value in table.items() if is_tensor(value))


def _in_object(owner: Any) -> _Held:
    for name, value in instance_dict(owner).items():
        if type(name) is str and not name.startswith("__"):
            yield value, f".{name}", "attribute", None
    for klass in type.__dict__["__mro__"].__get__(type(owner))[:-1]:
        for name, member in type.__dict__["__dict__"].__get__(klass).items():
            if type(member) is types.MemberDescriptorType:
                try:
                    yield member.__get__(owner, type(owner)), f".{name}", "attribute", None
                except AttributeError:  # an empty slot
                    continue
            elif type(member) in (dict, list, tuple) or is_tensor(member):
                yield member, f".{name}", "attribute", None


def roots(frame: types.FrameType) -> dict[str, tuple[Any, ReferenceKind]]:
    """A frame's variables, and the globals that its code speaks of."""
    code = frame.f_code
    found: dict[str, tuple[Any, ReferenceKind]] = {}
    if frame.f_locals is not frame.f_globals:
        for name, value in frame.f_locals.items():
            found[name] = value, "closure" if name in code.co_freevars else "variable"
    for name in code.co_names:
        if name not in found and name in frame.f_globals:
            found[name] = frame.f_globals[name], "global"
    return found
