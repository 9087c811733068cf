"""Notes where modules are attached and moved, and where parameters are born, in cells that are not traced too.

    hooks.install()        # %load_ext devtrace, and every recording
    hooks.uninstall()      # as many times as installed

torch calls global hooks when a parameter, buffer or module is registered and when an optimizer has stepped. We wrap
`nn.Module._apply`, which is behind `.to()`, `.cuda()` and `.half()`, and `Optimizer.load_state_dict`. All of this runs
when a model is built or moved and once a step, never with an op. Nothing is kept alive: modules are held
weakly, and what is known of a tensor is a stamp on its storage.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.compiler import is_compiling
from torch.nn.modules import module as registry
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.process_history import Attached, Happening, Moved, Stamp, history
from devtrace.recording.context.module_tree import children, registered
from devtrace.runtime.patches import Patches, SharedInstallation
from devtrace.runtime.quiet import Quiet, device_of, is_tensor
from devtrace.source.safe_values import instance_dict

if TYPE_CHECKING:
    from devtrace.recording.hot.recorder import Recorder

Module = torch.nn.Module

_moving = threading.local()
recorders: Final[list[Recorder]] = []
"""Running ones; the last is the innermost."""


def _install(undo: ExitStack) -> None:
    for handle in (
        registry.register_module_parameter_registration_hook(_registered),
        registry.register_module_buffer_registration_hook(_registered),
        registry.register_module_module_registration_hook(_attach),
        register_optimizer_step_post_hook(_stepped),
    ):
        undo.callback(handle.remove)
    patches = Patches()
    undo.callback(patches.undo)
    patches.set(Module, "_apply", _watched(Module._apply))
    patches.set(Optimizer, "load_state_dict", _loading(Optimizer.load_state_dict))


_hooks: Final = SharedInstallation(_install)
install: Final = _hooks.begin
uninstall: Final = _hooks.end


def begin(recorder: Recorder) -> int:
    """Let happenings note before which op of this recording they were. Return the first tick that is its own."""
    install()
    recorders.append(recorder)
    return next(history.ticks)


def end(recorder: Recorder) -> None:
    recorders.remove(recorder)
    uninstall()


def attached(module: Module) -> Attached | None:
    """Return where a module was attached to the parent that it last got."""
    found = history.attached.get(id(module))
    return found if found is not None and found.module() is module else None


def ancestors(module: Module) -> Iterator[Module]:
    """Yield the modules that contain a module, as far as they were seen to be attached, nearest first."""
    seen = {id(module)}
    found = attached(module)
    while found is not None:
        parent = found.parent()
        if parent is None or id(parent) in seen or dict(children(parent)).get(found.name) is not found.module():
            return
        seen.add(id(parent))
        yield parent
        found = attached(parent)


def moves() -> list[Moved]:
    """Return all moves still known, oldest first."""
    return list(history.moves)


def _now(depth: int) -> Happening:
    _changing()
    op = -1
    if recorders:
        state = recorders[-1].states.get(threading.get_ident())
        op = -1 if state is None else state.op
    return Happening(sites.find(sys._getframe(depth + 1)), next(history.ticks), op)


def _changing() -> bool:
    """Let a recording that had stopped for a while go on; return whether it had."""
    budget = recorders[-1].budget if recorders else None
    return budget is not None and budget.changed()


def _quietly(hook: Callable[[Any, str, Any], None]) -> Callable[[Any, str, Any], None]:
    """Wrap a hook so that its faults reach nobody: the birth or attachment is then not known."""

    def called(module: Any, name: str, value: Any) -> None:
        if value is None or is_compiling():
            return
        had_stopped = _changing()
        with suppress(Exception), Quiet():  # a lazy parameter, a module that takes no weak reference
            hook(module, name, value)
            if had_stopped and is_tensor(value):
                _note_late(recorders[-1], value)

    return called


def _note_late(recorder: Recorder, tensor: torch.Tensor) -> None:
    """Note that a tensor was registered here: when it was made is not known."""
    state, rows = recorder.states.get(threading.get_ident()), list[int]()
    if state is not None:
        recorder.gather(tensor, rows)
        recorder.late.update((row, state.op) for row in rows)


@_quietly
def _registered(module: Module, name: str, tensor: Any) -> None:
    """A parameter or buffer is registered: if nothing is known of its storage, it was born here."""
    if stamps.get(tensor) is stamps.UNSTAMPED:
        stamps.put(tensor, (-1, {}, sites.find(sys._getframe(2)), None))


@_quietly
def _attach(parent: Module, name: str, module: Module) -> None:
    key = id(module)
    reference = weakref.ref(module, lambda _: history.attached.pop(key, None))
    history.attached[key] = Attached(reference, weakref.ref(parent), name, _now(2))


def _stepped(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """A step made new state (an optimizer's first step, or one with new parameters): it was born in this step."""
    if is_compiling():
        return
    known, size = history.stateful.get(id(optimizer), (None, -1))
    if known is None or known() is not optimizer or size != len(_states(optimizer)):
        _take_state(optimizer, 1)


def _states(optimizer: Optimizer) -> dict[Any, Any]:
    """Return an optimizer's state as it is stored; empty where the class has a property of the user's for it."""
    states = instance_dict(optimizer).get("state")
    return states if issubclass(type(states), dict) else {}  # type: ignore[return-value]


def _loading(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def load_state_dict(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not is_compiling():
            _take_state(self, 1)

    return load_state_dict


def _take_state(optimizer: Optimizer, depth: int) -> None:
    """Let an optimizer's state that has no birth yet be born at the line that runs now."""
    with suppress(Exception), Quiet():
        site, key = sites.find(sys._getframe(depth + 1)), id(optimizer)
        states = _states(optimizer)
        for state in dict.values(states):
            for value in dict.values(state) if issubclass(type(state), dict) else ():
                if is_tensor(value) and stamps.get(value) is stamps.UNSTAMPED:
                    stamps.put(value, (-1, {}, site, None))
        reference = weakref.ref(optimizer, lambda _: history.stateful.pop(key, None))
        history.stateful[key] = reference, len(states)


def _watched(original: Callable[..., Module]) -> Callable[..., Module]:
    """`_apply` calls itself for the children: only the outermost call is a move."""

    def _apply(self: Module, *args: Any, **kwargs: Any) -> Module:
        if is_compiling() or getattr(_moving, "inside", False):
            return original(self, *args, **kwargs)
        _moving.inside = True
        at, before = _now(1), _devices_and_stamps(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            _moving.inside = False
            _moved(self, before, at)

    return _apply


def _devices_and_stamps(module: Module) -> list[tuple[Any, Stamp]]:
    """Look at each tensor of a module, in order. No tensor is kept: what moves out must be free to die."""
    try:
        with Quiet():
            return [(device_of(tensor), stamps.get(tensor)) for tensor in registered(module)]
    except Exception:  # noqa: BLE001 (a lazy module has parameters without a shape)
        return []


def _moved(module: Module, before: list[tuple[Any, Stamp]], at: Happening) -> None:
    with suppress(Exception), Quiet():  # such a move is not noted
        after = registered(module)
        pairs = list(zip(after, before, strict=True))
        gone = {device_of(tensor) for tensor, (device, _) in pairs if device_of(tensor) != device}
        both = [(stamp, _stamp_after(tensor, device, stamp, at.site)) for tensor, (device, stamp) in pairs]
        changed = tuple((old, new) for old, new in both if old is not new)
        device = gone.pop() if len(gone) == 1 else None
        history.moves.append(Moved(weakref.ref(module), device, len(after), changed, at))


def _stamp_after(tensor: torch.Tensor, device: torch.device, before: Stamp, site: int) -> Stamp:
    """Return a tensor's stamp after a move; if no recording saw the move, stamp it as born there from the old one."""
    stamp = stamps.get(tensor)
    if stamp is stamps.UNSTAMPED and before is not stamps.UNSTAMPED:
        stamp = (-1, {}, site, stamps.shorten((before[2], device, before[3])))
        stamps.put(tensor, stamp)
    return stamp
