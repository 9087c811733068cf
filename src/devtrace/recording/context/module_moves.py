"""Notes each `.to()`, `.cuda()` and `.half()` of a module: where, which way, and what it took along.

`nn.Module._apply` is behind all of them. It hands each tensor to a function: ours goes around that function, so that a
move of a large model needs no walk of our own to see what went. No tensor is kept: what moves out must be free to die.
"""

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import torch
from torch.compiler import is_compiling

from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.module_notes import Happening
from devtrace.recording.columns.process_history import UNCOUNTED, MovedModule, Stamp, history, mark_of
from devtrace.recording.context.happenings import next_op
from devtrace.recording.context.module_tree import count_registered, kept_tensors
from devtrace.runtime.patches import Patches
from devtrace.runtime.quiet import PLAIN, Quiet, dtype_of, function_modes, storage_of
from devtrace.runtime.watching import MOVES
from devtrace.source.safe_values import full_name_of
from devtrace.source.vocabulary import is_move

Module = torch.nn.Module

_moving: Final = threading.local()


def install(patches: Patches) -> None:
    patches.set(Module, "_apply", _watched(Module._apply))


def _watched(original: Callable[..., Module]) -> Callable[..., Module]:
    """`_apply` calls itself for the children: only the outermost call is a move."""

    @functools.wraps(original)
    def _apply(self: Module, fn: Callable[..., Any], recurse: bool = True) -> Module:
        if is_compiling():
            return original(self, fn, recurse)
        outer = getattr(_moving, "move", None)
        if outer is not None:
            if id(type(self)) not in outer.classes_of_torch:
                outer.look_at(self)
            return original(self, fn, recurse)
        move = _moving.move = _Move(Happening(sites.find(sys._getframe(1)), next(history.ticks), next_op()))
        move.look_at(self)
        try:
            return original(self, move.around(fn), recurse)
        finally:
            _moving.move = None
            move.end(self)

    return _apply


class _Move:
    """One move, while it is done."""

    def __init__(self, at: Happening) -> None:
        self.at = at
        self.handling = mark_of(sys.exception())
        self.changed = False
        self.parameters: set[int] = set()
        self.others = False  # met a buffer or a gradient, not known which: `end` counts the registered tensors then
        self.gone: set[torch.device] = set()
        self.target: Any = None  # which is asked where to, if there is nothing to move
        self.stamps: list[tuple[Stamp, Stamp]] = []
        self.classes_of_torch: set[int] = set()
        # By the id of a tensor's stamp: its device, dtype, and the new stamp that all such tensors of a line share.
        self._after: dict[int, tuple[torch.device, torch.dtype, Stamp]] = {}
        self._kept: list[Stamp] = []  # those of these ids
        self.device_of = torch.Tensor.device.__get__  # which a simulation replaces on torch's class

    def look_at(self, module: Module) -> None:
        """Mark a module's plain attributes as older than this move. Torch's own modules have none."""
        kind = type(module)
        with MOVES:
            if full_name_of(kind)[0].partition(".")[0] == "torch":
                self.classes_of_torch.add(id(kind))
                return
            with Quiet():
                for tensor in kept_tensors(module):
                    stamps.put_kept(tensor, self.at.tick)

    def around(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the function that moves a tensor. A model has thousands, and most go as the one before of their line."""
        take, known, device_of = self._take, self._after, self.device_of
        self.target = fn

        parameter, count = torch.nn.Parameter, self.parameters.add

        def moved(tensor: Any) -> Any:
            if type(tensor) is parameter:
                count(id(tensor))
            else:
                self.others = True
            made = fn(tensor)
            if made is tensor:
                return made
            if type(made) is torch.Tensor and type(tensor) in PLAIN and not function_modes():
                try:
                    storage = storage_of(made)
                    source, dtype, stamp = known[id(storage_of(tensor)._devtrace_stamp)]
                    is_alike = dtype_of(tensor) is dtype and device_of(tensor) == source
                    if is_alike and storage._devtrace_stamp is stamps.UNSTAMPED:
                        storage._devtrace_stamp = stamp
                        return made
                except Exception:  # noqa: BLE001, S110 (the first of its line, or one without a storage)
                    pass
            take(tensor, made)
            return made

        def moved_by_others(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            self.others = True
            made = fn(tensor, *args, **kwargs)
            if made is not tensor:
                take(tensor, made)
            return made

        around = moved if _is_torchs_own(fn) else moved_by_others
        with suppress(AttributeError, TypeError):
            functools.update_wrapper(around, fn)
        return around

    def _take(self, tensor: Any, made: Any) -> None:
        self.changed = True
        with MOVES, Quiet():
            self._note(tensor, made)

    def _note(self, tensor: Any, made: Any) -> None:
        """Note where a tensor went. If no recording saw it go, it is born there from the old one."""
        source, target = self.device_of(tensor), self.device_of(made)
        if source != target:
            self.gone.add(target)
        before = stamps.get(tensor)
        if before is stamps.UNSTAMPED:
            return
        past = before[2], source, dtype_of(tensor), before[3] and stamps.shorten(before[3], stamps.LONGEST_PAST - 1)
        birth = stamps.birth(self.at.site, past)
        after = stamps.put_birth(made, birth)
        if after is birth and stamps.are_kept():
            self._after[id(before)] = source, dtype_of(tensor), after
            self._kept.append(before)
        elif after is not before and before[0] >= 0 <= after[0]:  # both are rows of a recording
            self.stamps.append((before, after))

    def end(self, module: Module) -> None:
        with MOVES, Quiet():
            device = self.gone.pop() if len(self.gone) == 1 else None
            tensors = UNCOUNTED if self.parameters or self.others else 0
            if not tensors:
                device = _target(self.target)
            if self.changed:
                tensors = count_registered(module) if self.others else len(self.parameters)
            history.moves.append(
                MovedModule(weakref.ref(module), device, tensors, tuple(self.stamps), self.at, self.handling)
            )


def _is_torchs_own(fn: Any) -> bool:
    """Return whether a function is one of `nn.Module`'s, which takes a tensor and has one target for all."""
    code = getattr(fn, "__code__", None)
    return code is not None and code.co_filename == Module.to.__code__.co_filename


def _target(fn: Any) -> torch.device | None:
    """Return the target of a module's move that moved no tensor."""
    if not _is_torchs_own(fn):
        return None
    method = fn.__qualname__.split(".")[1]  # of Module.to.<locals>.convert
    if not is_move(method):
        return None
    kept: dict[str, Any] = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    given = kept["device"].cell_contents if "device" in kept else None
    if given is None and method == "to":
        return None
    device = torch.device(method, given) if type(given) is int else torch.device(given or method)
    is_whole = device.type == "cpu" or ":" in str(device)
    return device if is_whole else torch.device(device.type, _current(device))


def _current(device: torch.device) -> int:
    """Return the index of a type's device that is used where none is named, without starting the type's driver."""
    of_type: Any = getattr(torch, device.type, None)
    is_started = getattr(of_type, "is_initialized", bool)()
    return int(of_type.current_device()) if is_started else 0
