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
    patches.set(Module, "_apply", _watch(Module._apply))


def _watch(original: Callable[..., Module]) -> Callable[..., Module]:
    """Return an `_apply` that notes moves. It calls itself for children: only the outermost call is a move."""

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
        self.has_others = False  # a buffer or a gradient, not known which: `end` counts the registered tensors then
        self.targets: set[torch.device] = set()
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
        note, moves_of_line, device_of = self._note_safely, self._after, self.device_of
        self.target = fn

        parameter, count = torch.nn.Parameter, self.parameters.add

        def move_tensor(tensor: Any) -> Any:
            if type(tensor) is parameter:
                count(id(tensor))
            else:
                self.has_others = True
            result = fn(tensor)
            if result is tensor:
                return result
            if type(result) is torch.Tensor and type(tensor) in PLAIN and not function_modes():
                try:
                    storage = storage_of(result)
                    source, dtype, stamp = moves_of_line[id(storage_of(tensor)._devtrace_stamp)]
                    is_alike = dtype_of(tensor) is dtype and device_of(tensor) == source
                    if is_alike and storage._devtrace_stamp is stamps.UNSTAMPED:
                        storage._devtrace_stamp = stamp
                        return result
                except Exception:  # noqa: BLE001, S110 (the first of its line, or one without a storage)
                    pass
            note(tensor, result)
            return result

        def move_as_called(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            self.has_others = True
            result = fn(tensor, *args, **kwargs)
            if result is not tensor:
                note(tensor, result)
            return result

        wrapper = move_tensor if _is_of_module(fn) else move_as_called
        with suppress(AttributeError, TypeError):
            functools.update_wrapper(wrapper, fn)
        return wrapper

    def _note_safely(self, tensor: Any, result: Any) -> None:
        self.changed = True
        with MOVES, Quiet():
            self._note_move(tensor, result)

    def _note_move(self, tensor: Any, result: Any) -> None:
        """Note where a tensor went. If no recording saw it go, it is born there from the old one."""
        source, target = self.device_of(tensor), self.device_of(result)
        if source != target:
            self.targets.add(target)
        before = stamps.get(tensor)
        if before is stamps.UNSTAMPED:
            return
        past = before[2], source, dtype_of(tensor), before[3] and stamps.shorten(before[3], stamps.LONGEST_PAST - 1)
        birth = stamps.birth(self.at.site, past)
        after = stamps.put_birth(result, birth)
        if after is birth and stamps.storages_keep_attributes():
            self._after[id(before)] = source, dtype_of(tensor), after
            self._kept.append(before)
        elif after is not before and before[0] >= 0 <= after[0]:  # both are rows of a recording
            self.stamps.append((before, after))

    def end(self, module: Module) -> None:
        with MOVES, Quiet():
            device = self.targets.pop() if len(self.targets) == 1 else None
            count = UNCOUNTED if self.parameters or self.has_others else 0
            if not count:
                device = _target(self.target)
            if self.changed:
                count = count_registered(module) if self.has_others else len(self.parameters)
            history.moves.append(
                MovedModule(weakref.ref(module), device, count, tuple(self.stamps), self.at, self.handling)
            )


def _is_of_module(fn: Any) -> bool:
    """Return whether a function is one of `nn.Module`'s, which takes a tensor and has one target for all."""
    code = getattr(fn, "__code__", None)
    return code is not None and code.co_filename == Module.to.__code__.co_filename


def _target(fn: Any) -> torch.device | None:
    """Return the device of a move that met no tensor, read from the function that `_apply` got; else None."""
    if not _is_of_module(fn):
        return None
    method = fn.__qualname__.split(".")[1]  # of Module.to.<locals>.convert
    if not is_move(method):
        return None
    closure: dict[str, Any] = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    argument = closure["device"].cell_contents if "device" in closure else None
    if argument is None and method == "to":
        return None
    device = torch.device(method, argument) if type(argument) is int else torch.device(argument or method)
    is_whole = device.type == "cpu" or ":" in str(device)
    return device if is_whole else torch.device(device.type, _current_index(device))


def _current_index(device: torch.device) -> int:
    """Return the index of a type's device that is used where none is named, without starting the type's driver."""
    module: Any = getattr(torch, device.type, None)
    is_started = getattr(module, "is_initialized", bool)()
    return int(module.current_device()) if is_started else 0
