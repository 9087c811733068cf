"""`self.register_buffer("x", ..., persistent=False)`, `nn.ModuleList([...])`, `nn.ModuleDict()`.

A buffer that its class goes on to change is kept in checkpoints. Of a metric it is a state.
"""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import NO_PATH
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.moves import Move
from devtrace.diagnosis.evidence.source_text import assignments
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, SourceNode
from devtrace.diagnosis.fixes.at_binding import move_below_binding
from devtrace.diagnosis.fixes.changes import rewritten
from devtrace.diagnosis.fixes.fix import Fix, Moved, odd_rows, suggested
from devtrace.source import kinds
from devtrace.source.defuse import given_by, is_written, path_of, paths_in, targets
from devtrace.source.matching import alone, is_literal, match_code, nodes_of, only
from devtrace.source.object_walk import Reference, is_tensor, items_of, members
from devtrace.source.safe_values import class_dict, classes_of
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def register_on_module(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Register the attribute with the tensor on its module, and the module's other unregistered tensors."""
    unregistered = unregistered_step(verdict)
    found = next(_registering(case, verdict, unregistered), None) if unregistered is not None else None
    if found is None or unregistered is None:
        return
    fixes = [found]
    for reference in members(unregistered.owner):
        is_another = reference.kind == "attribute" and reference.key != unregistered.key
        if is_another and any(case.queries.dims[row] > 0 for row in _rows(case, reference.value)):
            fixes += itertools.islice(_registering(case, verdict, reference), 1)
    edits = tuple(edit for fix in fixes for edit in fix.edits)
    moved = tuple(moved for fix in fixes for moved in fix.moved)
    yield replace(found, edits=edits, moved=moved, trains=any(fix.trains for fix in fixes))


def move_what_a_package_keeps(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Move the tensor by hand, if its class is a package's."""
    if case.queries.package(verdict.born):
        yield from move_below_binding(case, verdict)


def _rows(case: MismatchCase, value: Any) -> list[TensorId]:
    """Return the odd tensors of a value, or of the layers in it."""
    return [row for each in items_of(value) for row in _rows(case, each)] or odd_rows(case, value)


def unregistered_step(verdict: Verdict) -> Reference | None:
    """Return the step from a module that `.to()` does not take."""
    if verdict.module is NO_PATH:
        return None
    below = verdict.name.references[len(verdict.module.references) :]
    if below and below[0].kind == "module":  # a plain object's attribute further down
        below = (*(reference for reference in below if reference.kind == "attribute"), verdict.name.last)
    is_attribute = below and below[0].kind == "attribute" and kinds.is_module(below[0].owner)
    return below[0] if is_attribute else None


def _registering(case: MismatchCase, verdict: Verdict, reference: Reference) -> Iterator[Fix]:
    """Yield the change of the attribute's only assignment in the constructor."""
    given = list(assignments(case.queries, reference.owner, reference.key))
    if not given:
        yield from _set_by_name(case, verdict, reference.owner)
    in_class = any(reference.key in class_dict(klass) for klass in classes_of(type(reference.owner)))
    if verdict.move is None or in_class:
        return  # a module takes no buffer under a name that it has
    building = [each for each in given if getattr(each.function, "name", "") == "__init__"]
    chosen = building[:1] or (given if len(given) == 1 else [])
    rows = _rows(case, reference.value)
    moved = [Moved(row, _since(case, row, verdict.move) if building else verdict.move.op) for row in rows]
    others = (getattr(each.node, "value", None) for each in given if each not in chosen)
    if any(type(each) in (bool, int, float, str) for each in others):
        return  # a buffer takes None and tensors only
    for each in chosen:
        yield from _registered(each, reference, moved)


def _set_by_name(case: MismatchCase, verdict: Verdict, module: Any) -> Iterator[Fix]:
    """Turn `setattr(self, f"grid_{n}", x)` of `__init__` into a buffer, for each tensor that the line made."""
    found = case.queries.own_node(verdict.born)
    call = alone(found.statement)
    given = match_code("setattr($owner, $name, $value)", call)
    if call is None or given is None or getattr(found.function, "name", "") != "__init__":
        return
    kept = [each for each in members(module) if each.kind == "attribute" and is_tensor(each.value)]
    unnamed = [each.value for each in kept if not any(assignments(case.queries, module, each.key))]
    births = ((row, case.queries.own_node(case.queries.born(case.queries.base(row)))) for row in _rows(case, unnamed))
    made = [row for row, born in births if born is NOWHERE or born.statement is found.statement]
    if verdict.move is None or not made or any(map(kinds.is_trained_leaf, unnamed)):
        return
    moved = [Moved(row, _since(case, row, verdict.move)) for row in made]
    owner, name, value = (found.code.text(given[each]) for each in ("owner", "name", "value"))
    new = f"{owner}.register_buffer({name}, {value}, persistent=False)"
    yield from rewritten(found.code, {call: new}, "fixed.buffer", moved)


def _since(case: MismatchCase, row: TensorId, move: Move) -> OpId:
    """Return the op of the module's move after `__init__`; unrecorded births count as before it."""
    is_read = not case.queries.evidence.saw_ops or case.queries.certainty(row) == "inferred"
    return max(move.op, case.queries.producer(case.queries.base(row))) if is_read else move.op


def _registered(given: SourceNode, reference: Reference, moved: list[Moved]) -> Iterator[Fix]:
    code, value, statement = given
    paths = [path for path, _ in given_by(code.source, statement)]
    left = next(path for path in paths if path.partition(".")[2] == reference.key)
    if not isinstance(value, ast.expr) or left in map(ast.unparse, ast.walk(value)):
        return
    right, container, is_alone = code.text(value), _container_of(reference.value), len(paths) == 1
    changed: ast.AST = statement
    if not is_alone and (container or kinds.is_trained_leaf(reference.value)):
        return
    if container:
        layers = "" if right in ("{}", "dict()") else right
        changed, new = value, f"{_torch_nn(code, reference.owner)}.{container}({layers})"
        key = "fixed.container-of-parameters" if container.startswith("Parameter") else "fixed.container"
        help = sentence(key, container=container, code=f"{left} = {one_line(new)}")
    elif not is_tensor(reference.value) or (is_literal(value) and right != "None"):
        return
    elif kinds.is_trained_leaf(reference.value):
        required = match_code("$x.requires_grad_()", value)  # every parameter does
        data = code.text(required["x"] if required is not None else value)
        new = f"{left} = {_torch_nn(code, reference.owner)}.Parameter({data})"
        help = sentence("fixed.parameter", code=one_line(new))
    else:
        own = left.rpartition(".")[0]
        is_running, kinds_of_owner = _is_running(code, statement, left), classes_of(type(reference.owner))
        if is_running and is_alone and any("add_state" in class_dict(kind) for kind in kinds_of_owner):
            new = f'{own}.add_state("{reference.key}", default={right}, dist_reduce_fx="sum")'
            help = sentence("fixed.state", code=one_line(new))
        else:
            right = right if is_alone else "None"  # `self.n, self.table = n, None` gives the buffer its value then
            new = f'{own}.register_buffer("{reference.key}", {right}{"" if is_running else ", persistent=False"})'
            help = sentence("fixed.buffer", code=one_line(new))
    trains = bool(container) or kinds.is_trained_leaf(reference.value)
    edit = code.replaced(changed, new) if is_alone else code.above(statement, new)
    yield from (replace(fix, trains=trains) for fix in suggested(help, edit, moved=moved))


def _is_running(code: Code, statement: ast.stmt, attribute: str) -> bool:
    """Return whether another line of the class updates the attribute: `self.mean = 0.9 * self.mean`."""
    around = (each for each in nodes_of(ast.ClassDef, code.source.tree) if statement in ast.walk(each))
    for node in itertools.chain.from_iterable(map(ast.walk, around)):
        given = (each for other in only(ast.Assign, [node]) if other is not statement for each in targets(other))
        new = (each.value for each in given if path_of(each.node) == attribute)
        if any(attribute in paths_in(value) for value in new) or is_written(node, attribute):
            return True
    return False


def _container_of(value: Any) -> str:
    """Return torch's container for modules or parameters: "ModuleList" for `[conv, norm]`, "" for `3`."""
    parts = items_of(value)
    of_parameters = all(map(kinds.is_parameter, parts))
    of_modules = all(map(kinds.is_module, parts))
    is_dict = type(value) is dict
    if not parts or not (of_parameters or of_modules) or (is_dict and any(type(key) is not str for key in value)):
        return ""
    return ("Parameter" if of_parameters else "Module") + ("Dict" if is_dict else "List")


def _torch_nn(code: Code, owner: Any) -> str:
    """Return the file's own name for torch.nn; a cell's may be from an earlier cell."""
    functions = (value for klass in classes_of(type(owner)) for value in class_dict(klass).values())
    namespace = next((each.__globals__ for each in functions if type(each) is FunctionType), {})
    known = (name for name, value in namespace.items() if type(value) is ModuleType and value.__name__ == "torch.nn")
    return code.source.known_as("torch.nn") or next(known, "torch.nn")
