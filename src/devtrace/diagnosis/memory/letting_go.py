"""Lets go of what a name keeps for nothing: graphs, tracebacks, results of cells, copies of what was loaded."""

from __future__ import annotations

import ast
from typing import Final

from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.memory.holdings import Group, Memory
from devtrace.diagnosis.memory.keeper import Keeper
from devtrace.source.matching import called_name, calls_in, keyword, variable
from devtrace.words.catalogue import sentence

Remedy = tuple[str, tuple[Edit, ...]]
_PARTS: Final = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Starred, ast.GeneratorExp, ast.ListComp)


def of_graphs(memory: Memory, group: Group) -> Remedy:
    """Keep the numbers and not the graphs: `losses.append(loss.detach())`."""
    keeps = memory.keeper(group)
    if keeps is None or keeps.runs_backward:
        return sentence("out-of-memory.help-graph", name=group.name), ()
    edit = _state_detached(keeps, group) if keeps.how == "carried" else _called(keeps, "detach()")
    if edit is None:
        return sentence("out-of-memory.help-graph", name=group.name), ()
    return sentence("out-of-memory.help-detach", name=group.name, code=edit.after.strip()), (edit,)


def _called(keeps: Keeper, method: str) -> Edit | None:
    """Call a method on what is kept; where that is a tuple or a dictionary, nobody knows on which part."""
    if isinstance(keeps.value, _PARTS) or called_name(keeps.value) in ("list", "tuple", "dict"):
        return None
    if called_name(keeps.statement) == "extend" or "extend" in {
        called_name(each) for each in calls_in(keeps.statement)
    }:
        return None
    return keeps.code.replaced(keeps.value, keeps.code.called_on(keeps.value, method))


def _state_detached(keeps: Keeper, group: Group) -> Edit | None:
    """Cut the graph of a state that goes from step to step: `hidden = hidden.detach()` below the line that gives it."""
    name = group.name
    parts = f"tuple(each.detach() for each in {name})" if group.is_contained else f"{name}.detach()"
    return keeps.code.below(keeps.statement, f"{name} = {parts}")


def of_traceback(memory: Memory, group: Group) -> Remedy:
    """Keep what an exception says and not its frames: `problems.append(str(error))`."""
    keeps = memory.keeper(group)
    edit = (
        keeps.code.replaced(keeps.value, f"str({keeps.code.text(keeps.value)})") if keeps and _is_name(keeps) else None
    )
    if edit is None:
        key = "traceback-sys" if group.name.startswith("sys.") else "traceback"
        return sentence(f"out-of-memory.help-{key}", name=group.name), ()
    return sentence("out-of-memory.help-str", name=group.name, code=edit.after.strip()), (edit,)


def _is_name(keeps: Keeper) -> bool:
    return variable(keeps.value) != ""


def of_history(memory: Memory, group: Group) -> Remedy:
    return sentence("out-of-memory.help-history"), ()


def loaded_to_the_host(memory: Memory, snapshot: FailureSnapshot) -> Remedy | None:
    """Load a checkpoint to the CPU, from where `load_state_dict` copies it."""
    for group in memory.worth:
        keeps = memory.keeper(group) if group.kind == "named" else None
        call = (
            next((each for each in calls_in(keeps.value) if called_name(each) in ("load", "load_file")), None)
            if keeps
            else None
        )
        if keeps is None or call is None:
            continue
        given = keyword(call, "map_location")
        edit = (
            keeps.code.replaced(given, '"cpu"')
            if given is not None
            else keeps.code.replaced(call, keeps.code.with_argument(call, 'map_location="cpu"'))
        )
        return sentence("out-of-memory.help-load", root=group.root), (edit,) if edit else ()
    return None


def to_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU what is only collected: `bank[name] = features.cpu()`."""
    keeps = memory.keeper(group)
    if keeps is None:
        return (sentence("out-of-memory.help-cpu", name=group.name), ()) if group.is_contained else None
    if keeps.runs_backward:
        return None
    if not group.is_contained:
        return (sentence("out-of-memory.help-grows", name=group.name), ()) if keeps.how == "carried" else None
    if keeps.how == "is":
        return sentence("out-of-memory.help-cpu", name=group.name), ()
    method = "detach().cpu()" if memory.has_graph(group.name) else "cpu()"
    edit = _called(keeps, method)
    if edit is None:
        return sentence("out-of-memory.help-cpu", name=group.name), ()
    return sentence("out-of-memory.help-cpu-edit", name=group.name, code=edit.after.strip()), (edit,)
