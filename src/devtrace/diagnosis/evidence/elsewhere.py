"""Tensors that objects hold on another device than expected: all of them, at any depth, by name.

The search follows modules (parameters, buffers and plain attributes), optimizers, containers and attributes of plain
objects. It leaves out functions, data sets and loaders, whose tensors belong where they are. No code of anybody's runs.
"""

from __future__ import annotations

import types
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.findings import Site
from devtrace.source.object_walk import is_tensor, members

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
class _Visit:
    """An object on the way, with its name, its owner and the modules that register it, outermost first."""

    value: Any
    name: str
    kind: str
    owner: Any
    modules: tuple[str, ...]


def matches(device: str, expected: str) -> bool:
    """Return whether a device is the expected one: "cuda:0", or any CUDA device for "cuda"."""
    return device == expected or (":" not in expected and device.partition(":")[0] == expected)


def elsewhere(
    roots: Sequence[tuple[str, object]], expected: str, born: Callable[[object], Site | None]
) -> tuple[Elsewhere, ...]:
    """Return the tensors under named objects that are on another device."""
    with access_paths.torch_answers():
        return _elsewhere(list(_tensors(roots)), expected, born)


def _elsewhere(every: Sequence[_Visit], expected: str, born: Callable[[object], Site | None]) -> tuple[Elsewhere, ...]:
    described = [access_paths.device_shape_and_dtype(visit.value) for visit in every]
    off = [not matches(device, expected) for device, _, _ in described]
    whole = _modules_wholly_off(every, off)
    return tuple(
        Elsewhere(visit.name, device, shape, dtype, _fix(visit, expected, whole), born(visit.value))
        for visit, (device, shape, dtype), is_off in zip(every, described, off, strict=True)
        if is_off and not (visit.kind == "step" and not shape)
    )


def _tensors(roots: Sequence[tuple[str, object]]) -> Iterator[_Visit]:
    queue: deque[_Visit] = deque(_Visit(value, name, "variable", None, ()) for name, value in roots)
    known: dict[int, tuple[Any, str]] = {}
    while queue:
        visit = queue.popleft()
        value = visit.value
        if id(value) in known:
            continue
        known[id(value)] = value, visit.name
        if is_tensor(value):
            yield visit
        elif not issubclass(type(value), _NOT_FOLLOWED) and not access_paths.stays_on_host(value):
            queue.extend(_inside(visit, known))


def _inside(visit: _Visit, known: dict[int, tuple[Any, str]]) -> Iterator[_Visit]:
    owner = visit.value
    modules = (*visit.modules, visit.name) if access_paths.is_module(owner) else ()
    for reference in members(owner):
        is_state = reference.kind == "state"
        text = f"[{known.get(id(reference.key), (None, '...'))[1]}]" if is_state else reference.text
        # Adam and its kin keep their count of steps on the CPU by design.
        count = text == '["step"]' and ".state[" in visit.name
        registered = modules if reference.kind in ("module", *_REGISTERED) else ()
        yield _Visit(reference.value, visit.name + text, "step" if count else reference.kind, owner, registered)


def _modules_wholly_off(every: Sequence[_Visit], off: Sequence[bool]) -> set[str]:
    """Return the modules all of whose parameters and buffers are elsewhere: one `.to()` moves such a module."""
    total: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for visit, is_off in zip(every, off, strict=True):
        total.update(visit.modules)
        wrong.update(visit.modules if is_off else ())
    return {name for name in total if wrong[name] == total[name]}


def _fix(visit: _Visit, expected: str, whole: set[str]) -> str:
    device = f'"{expected}"'
    if visit.kind in _REGISTERED and visit.modules:
        top = next((name for name in visit.modules if name in whole), visit.modules[-1])
        return f"{top}.to({device})"
    if access_paths.is_module(visit.owner):
        attribute = visit.name.rpartition(".")[2]
        return f'register_buffer("{attribute}", ..., persistent=False) in its module, so that .to() takes it along'
    if ".state[" in visit.name:
        return "move the model before the optimizer is built or its state loaded"
    return f"{visit.name} = {visit.name}.to({device})"
