"""Models that no optimizer trains and whose graphs are kept all the same: a teacher, a frozen encoder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import is_module, is_optimizer, is_trained_leaf, requires_grad
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.findings import Site
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.release_advice import Remedy
from devtrace.source.flow import path_of
from devtrace.source.matching import calls_in, nodes_of, owner_of
from devtrace.source.object_walk import is_tensor, parameters_of, registered
from devtrace.source.safe_values import Scope, evaluate
from devtrace.words.catalogue import sentence

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
