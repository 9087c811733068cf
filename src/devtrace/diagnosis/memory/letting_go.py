"""Lets go of what a name keeps for nothing: graphs, tracebacks, results of cells, copies of what was loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, Final

from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.memory.holdings import Group, Memory
from devtrace.diagnosis.memory.keeper import Keeper, is_number
from devtrace.source.flow import path_of, targets
from devtrace.source.matching import called_name, called_names, calls_in, listed, variable
from devtrace.source.object_walk import is_tensor
from devtrace.words.catalogue import sentence

_WRITTEN: Final = (ast.Tuple, ast.List, ast.Set, ast.Dict)
Remedy = tuple[str, tuple[Edit, ...]]


def of_graphs(memory: Memory, group: Group) -> Remedy:
    """Keep the numbers and not the graphs: `losses.append(loss.detach())`."""
    keeps = memory.keeper(group)
    if keeps is not None and keeps.how == "carried" and (keeps.is_each_round_backward or not keeps.runs_backward):
        edit = _state_detached(memory, keeps, group)
    elif keeps is not None and keeps.runs_backward:
        return each_backward(keeps)
    else:
        edit = _called(memory, keeps, group, "detach()") if keeps is not None else None
    if edit is None:
        return sentence("out-of-memory.help-graph", name=group.name), ()
    return sentence("out-of-memory.help-detach", name=group.name, code=edit.after.strip()), (edit,)


def each_backward(keeps: Keeper) -> Remedy:
    """Run backward in each round, which frees its graph: gradients add up."""
    if keeps.is_of_rounds_alone:
        text = keeps.code.text(keeps.value)
        code = text if variable(keeps.value) or called_name(keeps.value) else f"({text})"
        return sentence("out-of-memory.help-rounds", code=code), ()
    return sentence("out-of-memory.help-activation"), ()


def _called(memory: Memory, keeps: Keeper, group: Group, method: str) -> Edit | None:
    """Call a method on what is kept: of a tuple or a dictionary that is written out, on the parts that are tensors."""
    variables = _variables(memory, keeps)
    parts = list(_parts(keeps.value))
    if isinstance(keeps.value, _WRITTEN):
        if any(not variable(part) and not is_number(part) for part in parts):
            return None
        parts = [part for part in parts if is_tensor(variables.get(variable(part)))]
    else:
        depth = keeps.depth + (parts != [keeps.value])
        if keeps.how == "put" and memory.depth(group.name) not in (0, depth):
            return None
        named = [name for each in parts if (name := variable(each)) in variables]
        if len(named) < sum(variable(each) != "" for each in parts) and keeps.is_given_numbers:
            return None
        if any(isinstance(each, _WRITTEN) for each in parts) or not all(is_tensor(variables[each]) for each in named):
            return None
    if not parts or keeps.how == "drained" or called_names(keeps.statement) & {"extend", "update"}:
        return None
    return keeps.code.all_replaced([(part, keeps.code.called_on(part, method)) for part in parts])


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _parts(part)
        case ast.DictComp(value=part) | ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part):
            yield part
        case _:
            yield value


def _variables(memory: Memory, keeps: Keeper) -> Mapping[str, Any]:
    """Return the variables of the function that keeps something, where that is running."""
    function = keeps.source.function(keeps.statement)
    frames = (frame for _, frame in memory.queries.frames if frame.f_code.co_filename == keeps.source.file)
    return next((each.f_locals for each in frames if keeps.source.body_of(each.f_code) is function), {})


def _state_detached(memory: Memory, keeps: Keeper, group: Group) -> Edit | None:
    """Cut the graph of a state that goes from round to round, at the end of a round: `hidden = hidden.detach()`."""
    last = group.name.rpartition(".")[2]
    given = (path_of(part) for each in targets(keeps.statement) for part in listed(each.node))
    name = next((path for path in given if path.rpartition(".")[2] == last), group.name)
    value: Any = _variables(memory, keeps).get(name)
    each = f"each.detach() for each in {name}"
    if type(value) in (tuple, list) and all(map(is_tensor, value)):
        code = f"[{each}]" if type(value) is list else f"tuple({each})"
    elif value is None or is_tensor(value):
        code = f"{name}.detach()" if is_tensor(value) or not memory.depth(group.name) > 1 else f"tuple({each})"
    else:
        return None
    end = keeps.round.body[-1] if keeps.round is not None and keeps.runs_backward else keeps.statement
    return keeps.code.below(end, f"{name} = {code}")


def of_traceback(memory: Memory, group: Group) -> Remedy:
    """Keep what an exception says and not its frames: `problems.append(str(error))`."""
    keeps = memory.keeper(group)
    name = variable(keeps.value) if keeps is not None else ""
    edit = keeps.code.replaced(keeps.value, f"str({name})") if keeps is not None and name else None
    if edit is None:
        key = "traceback-sys" if group.name.startswith("sys.") else "traceback"
        return sentence(f"out-of-memory.help-{key}", name=group.name), ()
    return sentence("out-of-memory.help-str", name=group.name, code=edit.after.strip()), (edit,)


def of_history(memory: Memory, group: Group) -> Remedy:
    return sentence("out-of-memory.help-history"), ()


def loaded_to_the_host(memory: Memory) -> Remedy | None:
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
        edit = keeps.code.replaced(call, keeps.code.with_argument(call, "map_location", '"cpu"'))
        loaded = next((path for each in targets(keeps.statement) if (path := path_of(each.node))), group.name)
        return sentence("out-of-memory.help-load", name=loaded), (edit,) if edit else ()
    return None


def to_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU what is only collected: `bank[name] = features.cpu()`."""
    keeps = memory.keeper(group)
    if keeps is None:
        return (sentence("out-of-memory.help-cpu", name=group.name), ()) if group.is_contained else None
    if keeps.runs_backward:
        return None
    if keeps.how == "carried":
        return sentence("out-of-memory.help-grows", name=group.name), ()
    if not group.is_contained:
        return None
    if keeps.how == "is" or (keeps.is_a_cache and memory.is_used(group)):
        return sentence("out-of-memory.help-cpu", name=group.name), ()
    method = "detach().cpu()" if memory.has_graph(group.name) else "cpu()"
    edit = _called(memory, keeps, group, method)
    if edit is None:
        return sentence("out-of-memory.help-cpu", name=group.name), ()
    return sentence("out-of-memory.help-cpu-edit", name=group.name, code=edit.after.strip()), (edit,)
