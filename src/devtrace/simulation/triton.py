"""Triton, which every build of torch with CUDA brings along, needs a device of its own: here none is usable for it."""

import sys
from contextlib import ExitStack
from typing import NoReturn

from torch.utils import _triton

from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.patches import Patches
from devtrace.words.errors import SimulateError

_DRIVER = "triton.runtime.driver"


def install(patches: Patches, undo: ExitStack) -> None:
    """Let torch find no Triton, and refuse a launch of a program's own kernel, whenever Triton is loaded."""
    patches.set(_triton, "has_triton_package", lambda: False)
    _ask_again()
    undo.callback(_ask_again)
    watcher = ImportWatcher(_DRIVER)

    def refuse() -> None:
        config = sys.modules[_DRIVER].driver
        undo.callback(vars(config).update, dict(vars(config)))
        config.set_active(_NoDevice())

    undo.callback(watcher.cancel, refuse)
    watcher.call_when_imported(refuse)


def _ask_again() -> None:
    for answer in vars(_triton).values():
        if hasattr(answer, "cache_clear"):
            answer.cache_clear()


class _NoDevice:
    """Triton's driver, of which a launch asks the device first."""

    def __getattr__(self, name: str) -> NoReturn:
        raise SimulateError.of("simulate-limit.triton")
