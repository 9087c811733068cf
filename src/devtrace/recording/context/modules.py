"""The module tree: which modules ran, and those beside them that did not."""

import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.nn.modules import module as registry

from devtrace.recording.columns import sites
from devtrace.recording.columns.process_history import history
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.thread_state import ThreadState
from devtrace.recording.context import hooks, module_calls
from devtrace.recording.context.module_tree import (
    children,
    class_attribute,
    class_name,
    has_hooks,
    is_training,
    own_tensors,
    subtree,
)
from devtrace.runtime.patches import Patches
from devtrace.runtime.quiet import Quiet
from devtrace.runtime.torch_names import take
from devtrace.runtime.tracebacks import outward
from devtrace.runtime.watching import NAMES
from devtrace.source.safe_values import class_dict, classes_of, full_name_of, instance_dict
from devtrace.source.user_code import is_torch_or_ours

Module = torch.nn.Module

sites.files[module_calls.__file__] = sites.BOUNDARY


@dataclass(slots=True)
class KnownModule:
    """A module that a call has reached, or that belongs to the tree of one."""

    module: weakref.ref[Module]
    path: str  # below its root
    type: str
    parent: int
    root: int
    site: int = -1  # of a root: where it was first used, a line with the user's name for it
    method: bool = False  # ... and there a method of it was called, not the root itself
    passed: bool = False  # ... and there it was passed to torch, which called it: `checkpoint(block, x)`
    attached: int = -1  # where, as `pack_happening` writes it: it may be gone when the recording ends
    ran: bool = False
    plain: bool = False  # it ran, and its forward runs nobody's code but torch's, its children's and that of hooks


class Modules:
    """Rows of the modules table: trees, each in the order of `named_modules`."""

    def __init__(self, recorder: RecordedOps) -> None:
        self.recorder = recorder
        self.known: list[KnownModule] = []
        # Replicas that DataParallel makes for each step share the rows of their originals.
        self._rows: dict[int, tuple[weakref.ref[Module], int]] = {}
        self._by_reference: dict[int, int] = {}  # Python has one weak reference a module, also when that is gone
        self.latest: dict[tuple[int, str], tuple[str, list[int]]] = {}  # by row of module and name: role, rows
        self.noted: dict[int, tuple[int, str, str]] = {}  # row of a tensor -> row of its module, role, name in it

    def install(self, patches: Patches) -> None:
        if Module.__call__ is not module_calls.__call__:
            module_calls.original = Module.__call__
            patches.set(Module, "__call__", module_calls.__call__)
        patches.set(module_calls, "recording", self)
        patches.set(module_calls, "sampler", self.recorder.sampler)

    def follow_tensors(self) -> Iterator[Any]:
        """Yield the handles of hooks that note replacements of a known module's parameters and buffers."""
        yield registry.register_module_parameter_registration_hook(partial(self._note_replacement, "parameter"))
        yield registry.register_module_buffer_registration_hook(partial(self._note_replacement, "buffer"))

    def _note_replacement(self, role: str, module: Module, name: str, tensor: Any) -> None:
        row = self.row_of(module)
        if row < 0 or tensor is None or is_compiling() or self.known[row].module() is not module:
            return  # a replica's are gone after its step
        with NAMES, Quiet():
            rows: list[int] = []
            self.recorder.append_rows(tensor, rows)
            self.latest[row, name] = role, rows

    def open(self, module: Module, state: ThreadState) -> tuple[int, int, int] | None:
        """Begin a module's call, whose wrapper calls this; return what ends it, None where this fails."""
        try:
            return self._open(module, state, sys._getframe(1).f_back)
        except Exception as fault:  # noqa: BLE001 (whatever it is, the user's module runs)
            self.recorder.note("note.call-missed", fault)
            return None

    def _open(self, module: Module, state: ThreadState, caller: FrameType | None) -> tuple[int, int, int]:
        row = self.row_of(module)
        if row < 0:
            with self.recorder.lock:
                row = self._add_at_first_call(module, caller, state)
        known = self.known[row]
        if not known.ran:
            known.ran, known.plain = True, _runs_torch_alone(module)
            self._note_tensors(row)
        plain = known.plain and not (has_hooks(module) or any(_HOOKS))
        return state.open(row, caller, training=is_training(module), plain=plain)

    def _note_tensors(self, row: int) -> None:
        """Note the names of a module's tensors now: a model that is local to a function is gone at the end."""
        module = self.known[row].module()
        with Quiet():
            for role, name, tensor in own_tensors(module) if module is not None else ():
                rows: list[int] = []
                self.recorder.append_rows(tensor, rows)
                self.noted.update((tensor_row, (row, role, name)) for tensor_row in rows)

    def take(self, module: Module, site: int) -> None:
        """Add a module that no call has reached; at the site a method of it was called."""
        with self.recorder.lock:
            self._add_tree(module, site, method=True)

    def row_of(self, module: object) -> int:
        reference, row = self._rows.get(id(module), _NONE)
        return row if reference() is module else -1

    def row_of_reference(self, reference: weakref.ref[Module]) -> int:
        """Return the row of a module that may be gone."""
        row = self._by_reference.get(id(reference), -1)
        return row if row >= 0 and self.known[row].module is reference else -1

    def _add_at_first_call(self, module: Module, caller: FrameType | None, state: ThreadState) -> int:
        """Add the tree of a module at its first call."""
        if instance_dict(module).get("_is_replica", False) is True and state.parent >= 0:
            self._share_rows(module, state.parent)
        if self.row_of(module) < 0:
            root, frame = _find_root(module, caller)
            self._add_tree(root, state.find(frame), method=root is not module, passed=_is_of_torch(frame))
        if self.row_of(module) < 0:  # it is no longer in its root
            self._add_tree(module, state.find(caller), method=False, passed=_is_of_torch(caller))
        return self.row_of(module)

    def _add_tree(self, root: Module, site: int, *, method: bool, passed: bool = False) -> None:
        """Add rows for a root and all below it. Parts that were roots of their own, or that are new, join its tree."""
        rows: dict[str, int] = {}
        for path, module in subtree(root):
            parent = rows.get(path.rpartition(".")[0], -1) if path else -1
            row = rows[path] = self._row_or_new(module)
            known = self.known[row]
            known.path, known.parent, known.root = path, parent, rows[""]
        known = self.known[rows[""]]
        if known.site < 0:
            known.site, known.method, known.passed = site, method, passed

    def _row_or_new(self, module: Module) -> int:
        row = self.row_of(module)
        if row < 0:
            row = len(self.known)
            reference = weakref.ref(module)
            self.known.append(KnownModule(reference, "", class_name(type(module)), -1, row))
            self._rows[id(module)] = reference, row
            self._by_reference[id(reference)] = row
        self.known[row].attached = history.modules.attached_at(module)
        return row

    def _share_rows(self, replica: Module, row: int) -> None:
        """Let a replica and its parts have the rows of the originals, which are a child of the DataParallel."""
        data_parallel = self.known[row].module()
        for _, original in children(data_parallel) if data_parallel is not None else ():
            if type(original) is type(replica):
                parts = dict(subtree(original))
                for path, part in subtree(replica):
                    if path in parts:
                        self._rows[id(part)] = weakref.ref(part), self._row_or_new(parts[path])


_NONE: Any = (lambda: None, -1)


def _find_root(module: Module, caller: FrameType | None) -> tuple[Module, FrameType | None]:
    """Find the root of a module's tree, and the frame that uses the tree.

    In a method that was called by name (`model.loss(batch)`), `self.encoder(x)` is a part of `model`, whose __call__
    did not run. The root is the module whose method the outermost frame runs.
    """
    root_and_frame = module, caller
    above = list(hooks.ancestors(module))
    for frame in islice(outward(caller), 30) if above else ():
        owner = next((outer for outer in reversed(above) if _is_method(outer, frame.f_code)), None)
        if owner is not None:
            root_and_frame = owner, frame.f_back
    return root_and_frame


def _is_of_torch(frame: FrameType | None) -> bool:
    return frame is not None and is_torch_or_ours(frame.f_code.co_filename)


def _is_method(module: Module, code: CodeType) -> bool:
    for kind in classes_of(type(module)):
        if kind is Module:
            return False
        function = class_dict(kind).get(code.co_name)
        if type(function) is FunctionType and function.__code__ is code:
            return True
    return False


def _runs_torch_alone(module: Module) -> bool:
    """Return whether a module's forward runs only torch's code, so that its ops are at the line that called it."""
    if not full_name_of(type(module))[0].startswith("torch.nn.modules."):
        return False
    functions: list[Any] = [value for value in instance_dict(module).values() if type(value) is FunctionType]
    functions.append(class_attribute(type(module), "forward"))
    return all(
        type(function) is FunctionType and sites.files[function.__code__.co_filename] == sites.SKIP
        for function in functions
    )


_HOOKS = [
    take(f"nn.modules.module.{name}", "modules", instead=True)  # where they are not known, there may be some
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks")
]
