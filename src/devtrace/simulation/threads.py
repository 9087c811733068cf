"""A thread started in a simulation has its devices too: dispatch modes belong to a thread, patched names do not."""

import threading
from collections.abc import Callable

from torch.utils._python_dispatch import TorchDispatchMode

from devtrace.runtime.mode_stack import at_the_bottom
from devtrace.runtime.patches import Patches


def install(patches: Patches, new_mode: Callable[[], TorchDispatchMode]) -> None:
    """`_bootstrap_inner` and not `run`: subclasses override `run`."""
    original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def bootstrap(self: threading.Thread) -> None:
        with at_the_bottom(new_mode()):
            original(self)

    patches.set(threading.Thread, "_bootstrap_inner", bootstrap)
