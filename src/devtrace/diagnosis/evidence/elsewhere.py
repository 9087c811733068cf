"""Which tensors that objects hold are on another device than expected: all of them, at any depth, by name.

Follows modules (parameters, buffers and plain attributes), optimizers, containers and the attributes of plain objects;
not functions, data sets and loaders, whose tensors belong where they are. Runs no code of anybody's.
"""

from __future__ import annotations

import types
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.findings import Site

_NOT_FOLLOWED: Final = (types.FunctionType, types.MethodType, types.ModuleType, type)
_REGISTERED: Final = ("parameter", "buffer")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A tensor that is not where it was expected."""

    name: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    fix: str
    born: Site | None = None

    def __str__(self) -> str:
        shape = "×".join(map(str, self.shape)) or "scalar"
        born = f"   born {self.born}  {self.born.text}" if self.born else ""
        return f"{self.name}   {self.device}   {self.dtype} {shape}{born}\n      Fix  {self.fix}"


@dataclass(frozen=True, slots=True)
class _Held:
    """A tensor with its name, how its owner holds it, and the modules that register it, outermost first."""

    tensor: Any
    name: str
    kind: str
    owner: Any
    modules: tuple[str, ...]


def matches(device: str, expected: str) -> bool:
    """Whether a device is the expected one: "cuda:0", or any CUDA device for "cuda"."""
    return device == expected or (":" not in expected and device.partition(":")[0] == expected)


def elsewhere(
    roots: Sequence[tuple[str, object]], expected: str, born: Callable[[object], Site | None]
) -> tuple[Elsewhere, ...]:
    """The tensors under named objects that are on another device."""
    with access_paths.torch_answers():
        return _elsewhere(list(_tensors(roots)), expected, born)


def _elsewhere(every: Sequence[_Held], expected: str, born: Callable[[object], Site | None]) -> tuple[Elsewhere, ...]:
    told = [access_paths.seen(held.tensor) for held in every]
    off = [not matches(device, expected) for device, _, _ in told]
    whole = _modules_wholly_off(every, off)
    return tuple(
        Elsewhere(held.name, device, shape, dtype, _fix(held, expected, whole), born(held.tensor))
        for held, (device, shape, dtype), is_off in zip(every, told, off, strict=True)
        if is_off and not (held.kind == "step" and not shape)
    )


def _tensors(roots: Sequence[tuple[str, object]]) -> Iterator[_Held]:
    queue: deque[_Held] = deque(_Held(value, name, "variable", None, ()) for name, value in roots)
    known: dict[int, tuple[Any, str]] = {}
    while queue:
        held = queue.popleft()
        value = held.tensor
        if id(value) in known:
            continue
        known[id(value)] = value, held.name
        if access_paths.is_tensor(value):
            yield held
        elif not issubclass(type(value), _NOT_FOLLOWED) and not access_paths.stays_on_host(value):
            queue.extend(_inside(held, known))


def _inside(held: _Held, known: dict[int, tuple[Any, str]]) -> Iterator[_Held]:
    owner = held.tensor
    modules = (*held.modules, held.name) if access_paths.is_module(owner) else ()
    for value, text, step, key in access_paths.held(owner):
        name = held.name + (text if key is None else f"[{known.get(id(key), (None, '...'))[1]}]")
        # Adam and its kin keep their count of steps on the CPU by design.
        count = text == '["step"]' and ".state[" in held.name
        registered = modules if step in ("module", *_REGISTERED) else ()
        yield _Held(value, name, "step" if count else step, owner, registered)


def _modules_wholly_off(every: Sequence[_Held], off: Sequence[bool]) -> set[str]:
    """Modules all of whose parameters and buffers are elsewhere: one `.to()` of the module moves them."""
    total: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for held, is_off in zip(every, off, strict=True):
        total.update(held.modules)
        wrong.update(held.modules if is_off else ())
    return {name for name in total if wrong[name] == total[name]}


def _fix(held: _Held, expected: str, whole: set[str]) -> str:
    place = f'"{expected}"'
    if held.kind in _REGISTERED and held.modules:
        top = next((name for name in held.modules if name in whole), held.modules[-1])
        return f"{top}.to({place})"
    if access_paths.is_module(held.owner):
        attribute = held.name.rpartition(".")[2]
        return f'register_buffer("{attribute}", ..., persistent=False) in its module, so that .to() takes it along'
    if ".state[" in held.name:
        return "move the model before the optimizer is built or its state loaded"
    return f"{held.name} = {held.name}.to({place})"
