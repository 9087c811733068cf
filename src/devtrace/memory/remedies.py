"""What lets go of memory: edits where the source shows what is meant, else advice.

What nobody needs any more comes first, however large the rest is: graphs through which no backward pass will run,
frames of an error, results of cells, a checkpoint that was loaded, a model of before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.memory import release_advice, step_too_large, untrained
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.release_advice import Remedy
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name


def remedy(memory: Memory, snapshot: FailureSnapshot) -> Remedy:
    """Return what helps most: first what is held for nothing, then what the largest part is."""
    for group in memory.worth:
        if group.kind in _WASTE:
            return _WASTE[group.kind](memory, group)
    found = (
        release_advice.loaded_to_the_host(memory)
        or step_too_large.made_double(memory)
        or untrained.without_graph(memory, snapshot)
        or release_advice.deleted(memory, snapshot)
    )
    if found is not None:
        return found
    return next(_of_what_is_needed(memory))


def _of_what_is_needed(memory: Memory) -> Iterator[Remedy]:
    for find in (step_too_large.one_hot, step_too_large.outer_product, step_too_large.made_float):
        if (found := find(memory)) is not None:
            yield found
    for group in memory.worth:
        if group.kind == "parameter" and (found := release_advice.copies_to_the_host(memory, group)) is not None:
            yield found
    for group in sorted(memory.worth, key=lambda each: not _grows(memory, each)):
        if group.kind == "named" and (found := release_advice.to_the_host(memory, group)) is not None:
            yield found
        elif group.kind == "activation":
            yield step_too_large.rounds(memory) or step_too_large.smaller(memory, group)
        elif group.kind in ("parameter", "gradient", "optimizer-state"):
            yield _of_models(memory)
    yield sentence("out-of-memory.help"), ()


def _grows(memory: Memory, group: Group) -> bool:
    keeps = memory.keeper(group) if group.kind == "named" and group.is_contained else None
    return keeps is not None and keeps.adds


def _of_models(memory: Memory) -> Remedy:
    """Say which part of models and optimizers that are too large together need not be on the device."""
    copied = _copied(memory)
    if copied is not None:
        return sentence("out-of-memory.help-average", name=copied[0].name, of=copied[1].name), ()
    if short_op_name(memory.queries.op_name(memory.failed)).startswith("_foreach"):
        return sentence("out-of-memory.help-foreach"), ()
    return sentence("out-of-memory.help-optimizer"), ()


def _copied(memory: Memory) -> tuple[Group, Group] | None:
    """Return a model without gradients that is as large, part by part, as one that is trained, and that one."""
    trained = {group.name for group in memory.groups if group.kind in ("gradient", "optimizer-state")}
    models = [group for group in memory.groups if group.kind == "parameter"]
    sizes = {group.name: sorted(each.bytes for each in group.holdings) for group in models}
    for copy in models:
        for model in models:
            if copy.name not in trained and model.name in trained and sizes[copy.name] == sizes[model.name]:
                return copy, model
    return None


_WASTE: Final[dict[str, Callable[[Memory, Group], Remedy]]] = {
    "graph": release_advice.of_graphs,
    "traceback": release_advice.of_traceback,
    "history": lambda memory, group: (sentence("out-of-memory.help-history"), ()),
}
