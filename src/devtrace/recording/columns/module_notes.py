"""Where modules were attached, and where they got their parameters and buffers, for the whole process.

A model of thousands of modules makes thousands of notes while it is built. They are numbers in dictionaries: objects by
the thousand would make Python collect garbage, which costs more than the notes. The one object a module is its weak
reference. Who is gone is forgotten in sweeps, which is cheaper than a callback for each.
"""

import weakref
from typing import Any, Final, NamedTuple

Reference = weakref.ref[Any]
FEWEST_TO_SWEEP: Final = 4_096
_TICK: Final = 32
_OP: Final = 80


class Happening(NamedTuple):
    """When and where: `tick` counts all happenings of the process, `op` is the number of the next op of the recording
    that was running, in its thread (-1: none was)."""

    site: int
    tick: int
    op: int


def pack_happening(site: int, tick: int, op: int) -> int:
    return site + 1 | tick << _TICK | op + 1 << _OP


def unpack_happening(number: int) -> Happening:
    tick = number >> _TICK & (1 << _OP - _TICK) - 1
    return Happening((number & (1 << _TICK) - 1) - 1, tick, (number >> _OP) - 1)


class Attached(NamedTuple):
    """A module became part of another."""

    module: Reference
    parent: Reference
    name: str
    at: Happening


class ModuleNotes:
    """Notes by the id of a module. Those of a module that is gone are never taken for a later one's with its id."""

    def __init__(self) -> None:
        self.sweep_at = FEWEST_TO_SWEEP
        self._modules: dict[int, Reference] = {}
        self._attached: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._tensors: dict[int, dict[str, int]] = {}

    def __len__(self) -> int:
        return len(self._modules)

    def attach(self, parent: Any, name: str, module: Any, at: int) -> None:
        key = self._remember(module)
        self._parents[key] = self._remember(parent)
        self._attached[key] = at
        self._names[key] = name

    def register(self, module: Any, name: str, at: int) -> None:
        """Note that a module got a parameter or buffer."""
        key = self._remember(module)
        names = self._tensors.get(key)
        if names is None:
            self._tensors[key] = {name: at}
        else:
            names[name] = at

    def attached(self, module: Any) -> Attached | None:
        """Return where a module was attached to the parent that it last got."""
        key, at = id(module), self.attached_at(module)
        if at < 0:
            return None
        parent = self._modules.get(self._parents[key], _nothing)
        return Attached(self._modules[key], parent, self._names[key], unpack_happening(at))  # type: ignore[arg-type]

    def attached_at(self, module: Any) -> int:
        """Return what `packed` made of where a module was attached; -1 where that is not known."""
        key = id(module)
        reference = self._modules.get(key)
        return self._attached.get(key, -1) if reference is not None and reference() is module else -1

    def registered(self, module: Any, name: str) -> Happening | None:
        """Return where a module last got its parameter or buffer of this name, other than by a move."""
        key = id(module)
        reference, at = self._modules.get(key), self._tensors.get(key, {}).get(name)
        return unpack_happening(at) if at is not None and reference is not None and reference() is module else None

    def _remember(self, module: Any) -> int:
        """Return a module's id; from now on it is known whether that is still the same module."""
        key = id(module)
        reference = self._modules.get(key)
        if reference is None or reference() is not module:
            self._drop(key)
            self._modules[key] = weakref.ref(module)
            if len(self._modules) > self.sweep_at:
                self._sweep()
        return key

    def _drop(self, key: int) -> None:
        self._modules.pop(key, None)
        self._tensors.pop(key, None)
        if self._attached.pop(key, None) is not None:
            self._parents.pop(key, None)
            self._names.pop(key, None)

    def _sweep(self) -> None:
        for key, reference in list(self._modules.items()):
            if reference() is None:
                self._drop(key)
        self.sweep_at = max(FEWEST_TO_SWEEP, 2 * len(self._modules))


def _nothing() -> None:
    """Stand in for a weak reference to what is gone."""
