"""torch.compile: what was compiled runs eagerly while a simulation runs.

A compiler would generate code for a device that is not there; what only traces (`explain`, `export`) works. torch's own
switch, the stance, is set once torch._dynamo is loaded, which takes a second: now, or by the first torch.compile.
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
    _know_functions_anew()
    undo.callback(_know_functions_anew)
    if "torch._dynamo" in sys.modules:
        _run_eagerly(patches, undo)
        return

    def compile_later(*args: Any, **kwargs: Any) -> Any:
        compiled = compile_(*args, **kwargs)
        patches.set(torch, "compile", compile_)
        _run_eagerly(patches, undo)
        return compiled

    patches.set(torch, "compile", compile_later)


def _run_eagerly(patches: Patches, undo: ExitStack) -> None:
    dynamo = sys.modules["torch._dynamo"]
    explain: Callable[..., Any] = dynamo.explain

    def explain_all_the_same(function: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
        return torch.compiler.set_stance("default")(explain(function, **kwargs))  # type: ignore[no-any-return]

    patches.set(dynamo, "explain", explain_all_the_same)
    undo.enter_context(torch.compiler.set_stance("force_eager"))


def _know_functions_anew() -> None:
    """torch._dynamo keeps torch's functions by identity: not those of a simulation beyond it."""
    if rules := sys.modules.get("torch._dynamo.trace_rules"):
        rules.clear_lru_cache()
