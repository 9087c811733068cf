"""Models and optimizers that are too large together: which part need not be on the device."""

from __future__ import annotations

from devtrace.diagnosis.memory.holdings import Group, Memory
from devtrace.diagnosis.memory.letting_go import Remedy
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name


def smaller(memory: Memory) -> Remedy:
    copied = _copy(memory)
    if copied is not None:
        return sentence("out-of-memory.help-average", name=copied[0].name, of=copied[1].name), ()
    if short_op_name(memory.queries.op_name(memory.failed)).startswith("_foreach"):
        return sentence("out-of-memory.help-foreach"), ()
    return sentence("out-of-memory.help-optimizer"), ()


def _copy(memory: Memory) -> tuple[Group, Group] | None:
    """Return a model without gradients that is as large, part by part, as one that is trained, and that one."""
    trained = {group.name for group in memory.groups if group.kind in ("gradient", "optimizer-state")}
    models = [group for group in memory.groups if group.kind == "parameter"]
    sizes = {group.name: sorted(each.bytes for each in group.holdings) for group in models}
    for copy in models:
        for model in models:
            if copy.name not in trained and model.name in trained and sizes[copy.name] == sizes[model.name]:
                return copy, model
    return None
