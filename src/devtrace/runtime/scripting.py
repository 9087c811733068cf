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
    for _, _, before, ours in list(patches.replaced):
        own = getattr(ours, "__wrapped__", before)
        if own is MISSING or ours is own:
            continue
        if id(own) in builtins:
            patches.set_item(builtins, id(ours), builtins[id(own)])
        elif inspect.isfunction(ours) and inspect.isfunction(own) and hasattr(ours, "__wrapped__"):
            setattr(ours, _OWN, returning(own))
    patches.wrap(torch.jit._script, "_get_overloads", _overloads_of_its_own)


def _overloads_of_its_own(get_overloads: Call, function: Any) -> Any:
    """Overloads are kept by function, and dropped from the list of those to compile when they were compiled once."""
    return get_overloads(getattr(function, _OWN)() if hasattr(function, _OWN) else function)
