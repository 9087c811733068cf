"""Where modules were attached and moved, and their parameters born: known also of cells that are not traced.

    hooks.install()        # %load_ext devtrace, and every recording
    hooks.uninstall()      # as many times as installed

Global hooks that torch calls when a parameter, buffer or module is registered and when an optimizer has stepped, and
wrappers around `nn.Module._apply`, which is behind `.to()`, `.cuda()` and `.half()`, and `Optimizer.load_state_dict`.
They run when a model is built or moved and once a step, never with an op. Nothing is kept alive: modules are held
weakly, and what is known of a tensor is a stamp on its storage.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.compiler import is_compiling
from torch.nn.modules import module as registry
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.stamps import Stamp
from devtrace.runtime.patches import Patches

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from devtrace.recording.hot.recorder import Recorder

Module = torch.nn.Module
MOST_MOVES: Final = 2_000


@dataclass(frozen=True, slots=True)
class Happening:
    """When and where: `tick` counts all happenings of the process, `op` is the number of the next op of the recording
    that was running, in its thread (-1: none was)."""

    site: int
    tick: int
    op: int


@dataclass(frozen=True, slots=True)
class Attached:
    """A module became part of another."""

    module: weakref.ref[Module]
    parent: weakref.ref[Module]
    name: str
    at: Happening


@dataclass(frozen=True, slots=True)
class Moved:
    """`.to()` or the like of a module: `device` where its tensors went (None: all stayed where they were), `stamps` of
    each that moved before and after.
    """

    module: weakref.ref[Module]
    device: torch.device | None
    tensors: int
    stamps: tuple[tuple[Stamp, Stamp], ...]
    at: Happening


_attached: dict[int, Attached] = {}
_stateful: dict[int, tuple[weakref.ref[Optimizer], int]] = {}  # of how many parameters an optimizer's state is known
_moves: deque[Moved] = deque(maxlen=MOST_MOVES)
_ticks = itertools.count()
_patches = Patches()
_handles: list[RemovableHandle] = []
_users = 0
_moving = threading.local()
_recorders: list[Recorder] = []


def install() -> None:
    """Begin to watch, unless somebody has begun already."""
    global _users
    _users += 1
    if _users > 1:
        return
    _handles.append(registry.register_module_parameter_registration_hook(_born))
    _handles.append(registry.register_module_buffer_registration_hook(_born))
    _handles.append(registry.register_module_module_registration_hook(_attach))
    _handles.append(register_optimizer_step_post_hook(_stepped))
    _patches.set(Module, "_apply", _watched(Module._apply))
    _patches.set(Optimizer, "load_state_dict", _loading(Optimizer.load_state_dict))


def uninstall() -> None:
    """Stop watching when the last who installed is gone."""
    global _users
    _users -= 1
    if _users == 0:
        _patches.undo()
        while _handles:
            _handles.pop().remove()


def begin(recorder: Recorder) -> int:
    """Let happenings say before which op of this recording they were. Returns the first tick that is its own."""
    install()
    _recorders.append(recorder)
    return next(_ticks)


def end(recorder: Recorder) -> None:
    _recorders.remove(recorder)
    uninstall()


def attached(module: Module) -> Attached | None:
    """Where a module was attached to the parent that it last got."""
    found = _attached.get(id(module))
    return found if found is not None and found.module() is module else None


def ancestors(module: Module) -> Iterator[Module]:
    """The modules that hold a module, as far as they were seen to be attached, nearest first."""
    seen = {id(module)}
    found = attached(module)
    while found is not None:
        parent = found.parent()
        if parent is None or id(parent) in seen or parent._modules.get(found.name) is not found.module():
            return
        seen.add(id(parent))
        yield parent
        found = attached(parent)


def moves() -> list[Moved]:
    """All moves still known, oldest first."""
    return list(_moves)


def _now(depth: int) -> Happening:
    op = -1
    if _recorders:
        state = _recorders[-1].states.get(threading.get_ident())
        op = -1 if state is None else state.op
    return Happening(sites.find(sys._getframe(depth + 1)), next(_ticks), op)


def _quietly(hook: Callable[[Any, str, Any], None]) -> Callable[[Any, str, Any], None]:
    """A hook whose faults are nobody's: what it would have told is then not known."""

    def called(module: Any, name: str, value: Any) -> None:
        if value is None or is_compiling():
            return
        with suppress(Exception):  # a lazy parameter, a module that takes no weak reference
            hook(module, name, value)

    return called


@_quietly
def _born(module: Module, name: str, tensor: Any) -> None:
    """A parameter or buffer is registered: if nothing is known of its storage, it was born here."""
    if stamps.get(tensor) is stamps.UNSTAMPED:
        stamps.put(tensor, (-1, {}, sites.find(sys._getframe(2)), None))


@_quietly
def _attach(parent: Module, name: str, module: Module) -> None:
    key = id(module)
    reference = weakref.ref(module, lambda _: _attached.pop(key, None))
    _attached[key] = Attached(reference, weakref.ref(parent), name, _now(2))


def _stepped(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Of a new optimizer's first step, or one with new parameters: their state was born in it."""
    if is_compiling():
        return
    known, size = _stateful.get(id(optimizer), (None, -1))
    if known is None or known() is not optimizer or size != len(optimizer.state):
        _take_state(optimizer, 1)


def _loading(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def load_state_dict(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not is_compiling():
            _take_state(self, 1)

    return load_state_dict


def _take_state(optimizer: Optimizer, depth: int) -> None:
    """What is not known of an optimizer's state was born at the line that runs now."""
    with suppress(Exception):
        site, key = sites.find(sys._getframe(depth + 1)), id(optimizer)
        for state in optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor) and stamps.get(value) is stamps.UNSTAMPED:
                    stamps.put(value, (-1, {}, site, None))
        reference = weakref.ref(optimizer, lambda _: _stateful.pop(key, None))
        _stateful[key] = reference, len(optimizer.state)


def _watched(original: Callable[..., Module]) -> Callable[..., Module]:
    """`_apply` calls itself for the children: only the outermost call is a move."""

    def _apply(self: Module, *args: Any, **kwargs: Any) -> Module:
        if is_compiling() or getattr(_moving, "inside", False):
            return original(self, *args, **kwargs)
        _moving.inside = True
        at, before = _now(1), _facts(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            _moving.inside = False
            _moved(self, before, at)

    return _apply


Fact = tuple[Any, Stamp]


def _tensors(module: Module) -> Iterator[torch.Tensor]:
    yield from module.parameters()
    yield from module.buffers()


def _facts(module: Module) -> list[Fact]:
    """Device and stamp of each tensor of a module, in order. No tensor is kept: what moves out must be free to die."""
    try:
        return [(tensor.device, stamps.get(tensor)) for tensor in _tensors(module)]
    except Exception:  # noqa: BLE001 (a lazy module has parameters without a shape)
        return []


def _moved(module: Module, before: list[Fact], at: Happening) -> None:
    with suppress(Exception):  # a move that cannot be told is not told
        after = list(_tensors(module))
        pairs = list(zip(after, before, strict=True))
        gone = {tensor.device for tensor, (device, _) in pairs if tensor.device != device}
        told = tuple((stamp, _stamped(tensor, device, stamp, at.site)) for tensor, (device, stamp) in pairs)
        changed = tuple((old, new) for old, new in told if old is not new)
        _moves.append(Moved(weakref.ref(module), gone.pop() if len(gone) == 1 else None, len(after), changed, at))


def _stamped(tensor: torch.Tensor, device: torch.device, before: Stamp, site: int) -> Stamp:
    """The stamp of a tensor after a move that no recording saw: born at the move, of what it was before."""
    stamp = stamps.get(tensor)
    if stamp is stamps.UNSTAMPED and before is not stamps.UNSTAMPED:
        stamp = (-1, {}, site, stamps.shorten((before[2], device, before[3])))
        stamps.put(tensor, stamp)
    return stamp
