"""torch.compile: what was compiled runs eagerly while a simulation runs.

A compiler would generate code for a device that is not there. torch's own switch for it, the stance, is in
torch._dynamo, which takes more than a second to import. So the stance is set once that is loaded: now, or by the first
call of torch.compile.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from devtrace.runtime.patches import Patches


def install(patches: Patches, undo: ExitStack) -> None:
    """Nothing is compiled from here to the end of the simulation."""
    compile_: Callable[..., Any] = torch.compile
    if "torch._dynamo" in sys.modules:
        undo.enter_context(torch.compiler.set_stance("force_eager"))
        return

    def compile_later(*args: Any, **kwargs: Any) -> Any:
        compiled = compile_(*args, **kwargs)
        patches.set(torch, "compile", compile_)
        undo.enter_context(torch.compiler.set_stance("force_eager"))
        return compiled

    patches.set(torch, "compile", compile_later)
