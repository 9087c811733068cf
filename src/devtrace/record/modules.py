"""The module tree: which modules ran, and those beside them that did not."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

import torch

from devtrace.record import calls, sites
from devtrace.record.patches import Patches

if TYPE_CHECKING:
    from devtrace.record.recorder import Recorder
    from devtrace.record.state import ThreadState

sites.mark_boundary(calls.wrapped.__code__.co_filename)


@dataclass(slots=True)
class Known:
    """A module that a call has reached, or that belongs to the tree of one."""

    module: weakref.ref[torch.nn.Module]
    path: str  # below its root
    type: str
    parent: int
    root: int
    site: int  # of the root's first call: its line says what the user calls it
    plain: bool  # its forward is torch's own and runs nobody else's code but its children's and hooks
    ran: bool = False


class Modules:
    """Rows of the modules table, in the order of `named_modules` below each root."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.known: list[Known] = []
        self._rows: dict[int, int] = {}

    def install(self, patches: Patches) -> None:
        original = torch.nn.Module.__call__
        patches.set(torch.nn.Module, "__call__", calls.wrapped(original, self.recorder.states, self))

    def open(self, module: torch.nn.Module, state: ThreadState) -> tuple[int, int, int]:
        """A call begins, in the frame below this one."""
        caller = sys._getframe(1).f_back
        row = self.row_of(module)
        if row < 0:
            with self.recorder.lock:
                row = self._take(module, state.find(caller))
        known = self.known[row]
        known.ran = True
        plain = known.plain and not (module._forward_hooks or module._forward_pre_hooks or _global_hooks())
        return state.open(row, caller, training=module.training, plain=plain)

    def row_of(self, module: object) -> int:
        row = self._rows.get(id(module), -1)
        return row if row >= 0 and self.known[row].module() is module else -1

    def _take(self, module: torch.nn.Module, site: int) -> int:
        root = len(self.known)
        by_path: dict[str, int] = {}
        for path, inner in module.named_modules(remove_duplicate=True):
            row = len(self.known)
            parent = by_path.get(path.rpartition(".")[0], -1) if path else -1
            by_path[path] = row
            kind = type(inner).__name__
            self.known.append(Known(weakref.ref(inner), path, kind, parent, root, site, _plain(inner)))
            self._rows[id(inner)] = row
        return root


def _plain(module: torch.nn.Module) -> bool:
    """Whether all that a module's own forward runs is torch's code: its ops are at the line that called it."""
    code = getattr(type(module).forward, "__code__", None)
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    codes = [code, *(function.__code__ for function in functions)]
    return type(module).__module__.startswith("torch.nn.modules.") and all(
        isinstance(code, CodeType) and sites.files[code.co_filename] == sites.SKIP for code in codes
    )


def _global_hooks() -> bool:
    return bool(torch.nn.modules.module._global_forward_hooks or torch.nn.modules.module._global_forward_pre_hooks)
