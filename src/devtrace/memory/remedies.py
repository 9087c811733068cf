"""What lets go of memory: edits where the source shows what is meant, else advice.

What nobody needs any more comes first, however large the rest is: graphs through which no backward pass will run,
frames of an error, results of cells, a checkpoint that was loaded, a model of before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import is_module, is_optimizer, is_trained_leaf, requires_grad
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.findings import Site
from devtrace.memory import release_advice, step_too_large
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.release_advice import Remedy
from devtrace.source.flow import path_of
from devtrace.source.matching import calls_in, nodes_of, owner_of
from devtrace.source.object_walk import is_tensor, parameters_of, registered
from devtrace.source.safe_values import Scope, evaluate
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
        or without_graph(memory, snapshot)
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


# Models that no optimizer trains and whose graphs are kept all the same: a teacher, a frozen encoder.

_HEADER = "with torch.no_grad():"


def without_graph(memory: Memory, snapshot: FailureSnapshot) -> Remedy | None:
    """Compute under `torch.no_grad()` what such a model gives, where no input of its needs a gradient either."""
    optimizers = [each for each in snapshot.walk.objects.values() if is_optimizer(each)]
    trained = {id(parameter) for each in optimizers for parameter in parameters_of(each)}
    for group in memory.worth if trained else ():
        found = _made_by(memory, group) if group.kind == "activation" else None
        if found is None:
            continue
        code, statement, site = found
        function = code.source.function(statement)
        frame = next((each for each in snapshot.frames if code.source.body_of(each.f_code) is function), None)
        if frame is None:
            continue
        scope = Scope.of(frame)
        called = dict(_models(statement, scope))
        names = [path for path, call in called.items() if _is_untrained(call, scope, trained)]
        if names:
            is_alone = len(called) == 1 and isinstance(frame.f_globals.get("torch"), ModuleType)
            edit = code.within(statement, _HEADER) if is_alone else None
            return sentence("out-of-memory.help-untrained", name=names[0], line=site.line), (edit,) if edit else ()
    return None


def _made_by(memory: Memory, group: Group) -> tuple[Code, ast.stmt, Site] | None:
    """Return the statement that made most of a group, else the one that gave its name a value."""
    found, site = memory.queries.source_node(group.born()), memory.queries.site(group.born())
    if found is not None and site is not None:
        return found.code, found.statement, site
    keeps = memory.keeper(group)
    return (keeps.code, keeps.statement, keeps.site) if keeps is not None else None


def _models(statement: ast.stmt, scope: Scope) -> Iterator[tuple[str, ast.Call]]:
    """Yield the models that a statement calls."""
    for call in calls_in(statement):
        path = path_of(call.func)
        if path and is_module(evaluate(call.func, scope)):
            yield path, call


def _is_untrained(call: ast.Call, scope: Scope, trained: set[int]) -> bool:
    own = [tensor for _, tensor in registered(evaluate(call.func, scope)) if is_trained_leaf(tensor)]
    given = [evaluate(node, scope) for node in nodes_of(ast.expr, *call.args, *call.keywords) if path_of(node)]
    needs_none = bool(given) and not any(is_tensor(each) and requires_grad(each) for each in given)
    inner = [owner_of(each) for each in calls_in(call) if each is not call]  # `x.to(device)` needs none either
    is_of_tensors = all(each is not None and path_of(each) and is_tensor(evaluate(each, scope)) for each in inner)
    return needs_none and is_of_tensors and bool(own) and not any(id(each) in trained for each in own)
