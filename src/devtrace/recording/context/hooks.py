"""Notes where modules are attached and moved, and where parameters are born, in cells that are not traced too.

    hooks.install()        # %load_ext devtrace, and every recording
    hooks.uninstall()      # as many times as installed

torch calls global hooks when a parameter, buffer or module is registered. `module_moves` and `optimizers` watch
what else happens outside of a recording; a deep copy (what an EMA keeps) is born where it was made. All of this runs
when a model is built or moved and once a step, never with an op. Nothing is kept alive: modules are held weakly, and
what is known of a tensor is a stamp on its storage.

A model of thousands of modules runs these hooks thousands of times. So the torch frames above a hook are skipped by
count, and notes are numbers (`module_notes`).
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from types import FrameType
from typing import Any, Final

import torch
from torch.compiler import is_compiling
from torch.nn.modules import module as registry

from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.module_notes import pack_happening
from devtrace.recording.columns.process_history import history
from devtrace.recording.columns.sites import files
from devtrace.recording.context import module_moves, optimizers
from devtrace.recording.context.happenings import follow, next_op, op_of_attaching, recorders, resume
from devtrace.recording.context.module_tree import children
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.patches import Patches, SharedInstallation
from devtrace.runtime.quiet import PLAIN, Quiet, function_modes, is_tensor, storage_of
from devtrace.runtime.torch_names import fault_of
from devtrace.runtime.watching import BIRTHS, MODULES

Module = torch.nn.Module


def _install(undo: ExitStack) -> None:
    stamps.install(undo)
    for handle in (
        registry.register_module_parameter_registration_hook(_note_registration),
        registry.register_module_buffer_registration_hook(_note_registration),
        registry.register_module_module_registration_hook(_note_attachment),
        *optimizers.hook(),
    ):
        undo.callback(handle.remove)
    patches = Patches()
    undo.callback(patches.undo)
    if not fault_of("module_moves"):
        module_moves.install(patches)
    optimizers.install(patches)
    for kind in (torch.Tensor, torch.nn.Parameter):
        patches.wrap(kind, "__deepcopy__", partial(follow, BIRTHS, _note_copy))


def _note_copy(original: Any, copy: Any, caller: FrameType) -> None:
    with Quiet():
        if is_tensor(copy) and copy is not original:
            stamps.put_birth(copy, stamps.birth(sites.find(caller)))


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


def ancestors(module: Module) -> Iterator[Module]:
    """Yield the modules that contain a module, as far as they were seen to be attached, nearest first."""
    seen = {id(module)}
    link = history.modules.attached(module)
    while link is not None:
        parent = link.parent()
        if parent is None or id(parent) in seen or dict(children(parent)).get(link.name) is not link.module():
            return
        seen.add(id(parent))
        yield parent
        link = history.modules.attached(parent)


def _note_registration(module: Module, name: str, tensor: Any) -> None:
    """A parameter or buffer is registered: if nothing is known of its storage, it was born here."""
    if tensor is None or is_compiling():
        return
    try:
        has_resumed = bool(recorders) and resume()
        site, op = sites.find(sys._getframe(2)), next_op() if recorders else -1
        history.modules.register(module, name, pack_happening(site, next(history.ticks), op))
        stamp = history.births.get(site)
        if stamp is None:
            stamp = history.births[site] = stamps.birth(site)
        if type(tensor) in PLAIN and not function_modes() and stamps.storages_keep_attributes():
            storage = storage_of(tensor)
            if storage._devtrace_stamp is stamps.UNSTAMPED:
                storage._devtrace_stamp = stamp
        else:
            with Quiet():
                stamps.put_birth(tensor, stamp)
        if has_resumed:
            _note_late(recorders[-1], tensor, sys._getframe(2))
    except Exception as fault:  # noqa: BLE001 (a `with` would cost as much as what is noted)
        BIRTHS.miss(fault)


def _note_late(recorder: Recorder, tensor: torch.Tensor, frame: Any) -> None:
    """Note that a tensor was registered at the end of a gap, in which it may have been made.

    A layer of torch's makes its tensors itself, in `__init__`.
    """
    state, rows = recorder.states.get(threading.get_ident()), list[int]()
    if state is not None:
        with Quiet():
            recorder.append_rows(tensor, rows)
        while frame is not None and frame.f_code.co_filename == registry.__file__:
            frame = frame.f_back
        torch_made_it = frame is not None and frame.f_code.co_name == "__init__" and not files[frame.f_code.co_filename]
        recorder.late.update((row, (state.op, torch_made_it)) for row in rows)


def _note_attachment(parent: Module, name: str, module: Module | None) -> None:
    if module is None or is_compiling():
        return
    try:
        site = sites.find(sys._getframe(2))
        history.modules.attach(parent, name, module, pack_happening(site, next(history.ticks), op_of_attaching(site)))
    except Exception as fault:  # noqa: BLE001
        MODULES.miss(fault)
