"""The module tree: which modules ran, and those beside them that did not."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
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

    def row(self, module: torch.nn.Module, state: ThreadState) -> int:
        """The row of a module that is being called."""
        row = self._rows.get(id(module), -1)
        if row < 0 or self.known[row].module() is not module:
            row = self._add(module, state)
        self.known[row].ran = True
        return row

    def _add(self, module: torch.nn.Module, state: ThreadState) -> int:
        """Take in the tree of a module met at its first call: a root, or one that came to its parent later."""
        wrapper = sys._getframe(2)
        with self.recorder.lock:
            return self._take(module, sites.find(wrapper.f_back, state.outside, state.base))

    def _take(self, module: torch.nn.Module, site: int) -> int:
        root = len(self.known)
        by_path: dict[str, int] = {}
        for path, inner in module.named_modules(remove_duplicate=True):
            row = len(self.known)
            parent = by_path.get(path.rpartition(".")[0], -1) if path else -1
            by_path[path] = row
            self.known.append(Known(weakref.ref(inner), path, type(inner).__name__, parent, root, site))
            self._rows[id(inner)] = row
        return root
