"""torch.compile: what was compiled runs eagerly while a simulation runs.

A compiler would generate code for a device that is not there; what only traces (`explain`, `export`) works. torch's own
switch, the stance, is set once torch._dynamo is loaded, which takes a second: by the first torch.compile or optimizer.
"""

import sys
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch

from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.patches import Call, Patches


def install(patches: Patches, undo: ExitStack) -> None:
    """Nothing is compiled from here to the end of the simulation."""
    _forget_known_functions()
    undo.callback(_forget_known_functions)
    watcher, run = ImportWatcher("torch._dynamo"), partial(_run_eagerly, patches, undo)
    undo.callback(watcher.cancel, run)
    watcher.call_when_imported(run)


def _run_eagerly(patches: Patches, undo: ExitStack) -> None:
    patches.wrap(sys.modules["torch._dynamo"], "explain", _explain_as_usual)
    undo.enter_context(torch.compiler.set_stance("force_eager"))


def _explain_as_usual(explain: Call, function: Call, **kwargs: Any) -> Any:
    return torch.compiler.set_stance("default")(explain(function, **kwargs))


def _forget_known_functions() -> None:
    """Let torch._dynamo forget which functions are torch's, as a simulation replaces some and puts them back."""
    if rules := sys.modules.get("torch._dynamo.trace_rules"):
        rules.clear_lru_cache()
