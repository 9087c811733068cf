"""torch.jit.script beside our patches: it knows a function by its id or reads its source, and must find torch's own."""

import inspect
from typing import Any

import torch

from devtrace.runtime.patches import MISSING, Call, Patches
from devtrace.runtime.torch_names import returning

_OWN = "__prepare_scriptable__"  # torch's own question to an object: what shall be compiled in its place


def install(patches: Patches) -> None:
    """Tell torch.jit of each function that was replaced until here which one it stands for."""
    builtins = torch.jit._builtins._get_builtin_table()
    for _, _, replaced, ours in list(patches.replaced):
        original = getattr(ours, "__wrapped__", replaced)
        if original is MISSING or ours is original:
            continue
        if id(original) in builtins:
            patches.set_item(builtins, id(ours), builtins[id(original)])
        elif inspect.isfunction(ours) and inspect.isfunction(original) and hasattr(ours, "__wrapped__"):
            setattr(ours, _OWN, returning(original))
    patches.wrap(torch.jit._script, "_get_overloads", _overloads_of_its_own)


def _overloads_of_its_own(get_overloads: Call, function: Any) -> Any:
    """Overloads are kept by function, and dropped from the list of those to compile when they were compiled once."""
    return get_overloads(getattr(function, _OWN)() if hasattr(function, _OWN) else function)
