"""Tensors of objects on another device than expected: all of them, at any depth, by name.

The search follows modules (parameters, buffers and plain attributes), optimizers, containers and attributes of plain
objects. It leaves out functions, data sets and loaders, whose tensors belong where they are. No code of anybody's runs.
"""

import sys
import types
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from devtrace.diagnosis.evidence.access_paths import AccessPath, Walk
from devtrace.diagnosis.findings import Site
from devtrace.source import kinds
from devtrace.source.freeze import Freezer
from devtrace.source.object_walk import ReferenceKind
from devtrace.source.stand_ins import HostData
from devtrace.words.catalogue import sentence

_NOT_FOLLOWED: Final = (types.FunctionType, types.MethodType, types.ModuleType, type, HostData)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A tensor on an unexpected device."""

    name: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    fix: str
    born: Site | None = None

    def __str__(self) -> str:
        shape = "×".join(map(str, self.shape)) or sentence("elsewhere.scalar")
        born = f"   {sentence('label.created')} {self.born}  {self.born.text}" if self.born else ""
        return f"{self.name}   {self.device}   {self.dtype} {shape}{born}\n      {sentence('label.fix')}  {self.fix}"


def matches(device: str, expected: str) -> bool:
    """Return whether a device is the expected one: "cuda:0", or any CUDA device for "cuda"."""
    return device == expected or (":" not in expected and device.partition(":")[0] == expected)


def elsewhere(
    roots: Sequence[tuple[str, object]], expected: str, born: Callable[[object], Site | None]
) -> tuple[Elsewhere, ...]:
    """Return the tensors under named objects that are on another device."""
    freezer = Freezer(lambda _: None, (), sys.maxsize)
    frozen = {name: freezer.of(value) for name, value in roots}
    freezer.fill()
    variables: dict[str, tuple[Any, ReferenceKind]] = {name: (value, "variable") for name, value in frozen.items()}
    walk = Walk([variables], lambda value: not issubclass(type(value), _NOT_FOLLOWED), sys.maxsize, sys.maxsize)
    paths = [walk.first_path(tensor) for tensor in walk.tensors]
    off = [not matches(tensor._device, expected) for tensor in walk.tensors]
    whole = _modules_wholly_off(paths, off)
    found = zip(paths, walk.tensors, off, strict=True)
    wrong = [(path, item) for path, item, is_off in found if is_off and not (path.is_step_count and not item._shape)]
    return tuple(
        Elsewhere(
            name=path.text,
            device=tensor._device,
            shape=tensor._shape,
            dtype=tensor._dtype,
            fix=_fix(path, expected, whole),
            born=born(freezer.live[id(tensor)]),
        )
        for path, tensor in wrong
    )


def _registering_modules(path: AccessPath) -> list[str]:
    """Return the modules whose `.to()` reaches a tensor, outermost first."""
    modules = (path.prefix(index + 1) for index, _ in path.modules() if path.registered_from(index))
    return [module.code or module.text for module in modules]


def _modules_wholly_off(paths: Sequence[AccessPath], off: Sequence[bool]) -> set[str]:
    """Return the modules with all parameters and buffers elsewhere: one `.to()` moves such a module."""
    tensors_of: Counter[str] = Counter()
    off_tensors_of: Counter[str] = Counter()
    for path, is_off in zip(paths, off, strict=True):
        modules = _registering_modules(path)
        tensors_of.update(modules)
        off_tensors_of.update(modules if is_off else ())
    return {name for name in tensors_of if off_tensors_of[name] == tensors_of[name]}


def _fix(path: AccessPath, expected: str, whole: set[str]) -> str:
    modules = _registering_modules(path)
    if modules:
        movable = next((name for name in modules if name in whole), modules[-1])
        return f'{movable}.to("{expected}")'
    if kinds.is_module(path.last.owner):
        attribute = path.text.rpartition(".")[2]
        return sentence("elsewhere.register", attribute=attribute)
    if ".state[" in path.text:
        return sentence("elsewhere.optimizer")
    code = path.code or path.text
    return f'{code} = {code}.to("{expected}")'
