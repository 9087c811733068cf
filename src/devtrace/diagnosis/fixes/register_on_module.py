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
    first = next(_registrations(case, verdict, unregistered), None) if unregistered is not None else None
    if first is None or unregistered is None:
        return
    fixes = [first]
    for reference in members(unregistered.owner):
        is_another = reference.kind == "attribute" and reference.key != unregistered.key
        if is_another and any(case.queries.dims[row] > 0 for row in _odd_rows_in(case, reference.value)):
            fixes += itertools.islice(_registrations(case, verdict, reference), 1)
    edits = tuple(edit for fix in fixes for edit in fix.edits)
    moved = tuple(moved for fix in fixes for moved in fix.moved)
    yield replace(first, edits=edits, moved=moved, trains=any(fix.trains for fix in fixes))


def move_what_a_package_keeps(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Move the tensor by hand, if its class is a package's."""
    if case.queries.package(verdict.born):
        yield from move_below_binding(case, verdict)


def _odd_rows_in(case: MismatchCase, value: Any) -> list[TensorId]:
    """Return the odd tensors of a value, or of the layers in it."""
    return [row for item in items_of(value) for row in _odd_rows_in(case, item)] or odd_rows(case, value)


def unregistered_step(verdict: Verdict) -> Reference | None:
    """Return the step from a module to a plain attribute, which `.to()` of the module does not take."""
    if verdict.module is NO_PATH:
        return None
    steps = verdict.name.references[len(verdict.module.references) :]
    if steps and steps[0].kind == "module":  # a plain object's attribute further down
        steps = (*(reference for reference in steps if reference.kind == "attribute"), verdict.name.last)
    is_attribute = steps and steps[0].kind == "attribute" and kinds.is_module(steps[0].owner)
    return steps[0] if is_attribute else None


def _registrations(case: MismatchCase, verdict: Verdict, reference: Reference) -> Iterator[Fix]:
    """Yield the change of the attribute's assignment in the constructor, or of its only one elsewhere."""
    setters = list(assignments(case.queries, reference.owner, reference.key))
    if not setters:
        yield from _register_by_name(case, verdict, reference.owner)
    in_class = any(reference.key in class_dict(klass) for klass in classes_of(type(reference.owner)))
    if verdict.move is None or in_class:
        return  # a module takes no buffer under a name that it has
    in_init = [setter for setter in setters if getattr(setter.function, "name", "") == "__init__"]
    chosen = in_init[:1] or (setters if len(setters) == 1 else [])
    rows = _odd_rows_in(case, reference.value)
    moved = [Moved(row, _moved_since(case, row, verdict.move) if in_init else verdict.move.op) for row in rows]
    other_values = (getattr(setter.node, "value", None) for setter in setters if setter not in chosen)
    if any(type(value) in (bool, int, float, str) for value in other_values):
        return  # a buffer takes None and tensors only
    for setter in chosen:
        yield from _register(setter, reference, moved)


def _register_by_name(case: MismatchCase, verdict: Verdict, module: Any) -> Iterator[Fix]:
    """Turn `setattr(self, f"grid_{n}", x)` of `__init__` into `register_buffer`, for each tensor that the line made."""
    queries, birth = case.queries, case.queries.own_node(verdict.born)
    call = alone(birth.statement)
    match = match_code("setattr($owner, $name, $value)", call)
    if call is None or match is None or getattr(birth.function, "name", "") != "__init__":
        return
    attributes = [each for each in members(module) if each.kind == "attribute" and is_tensor(each.value)]
    unnamed = [each.value for each in attributes if not any(assignments(queries, module, each.key))]
    births = ((row, queries.own_node(queries.born(queries.base(row)))) for row in _odd_rows_in(case, unnamed))
    of_line = [row for row, other in births if other is NOWHERE or other.statement is birth.statement]
    if verdict.move is None or not of_line or any(map(kinds.is_trained_leaf, unnamed)):
        return
    moved = [Moved(row, _moved_since(case, row, verdict.move)) for row in of_line]
    owner, name, value = (birth.code.text(match[hole]) for hole in ("owner", "name", "value"))
    new = f"{owner}.register_buffer({name}, {value}, persistent=False)"
    yield from rewritten(birth.code, {call: new}, "fixed.buffer", moved)


def _moved_since(case: MismatchCase, row: TensorId, move: Move) -> OpId:
    """Return the op of the module's move, or of a later birth if that was read from the source, not recorded."""
    is_inferred = not case.queries.evidence.saw_ops or case.queries.certainty(row) == "inferred"
    return max(move.op, case.queries.producer(case.queries.base(row))) if is_inferred else move.op


def _register(setter: SourceNode, reference: Reference, moved: list[Moved]) -> Iterator[Fix]:
    code, value, statement = setter
    paths = [path for path, _ in given_by(code.source, statement)]
    target = next(path for path in paths if path.partition(".")[2] == reference.key)
    if not isinstance(value, ast.expr) or target in map(ast.unparse, ast.walk(value)):
        return
    text, container, is_alone = code.text(value), _container_of(reference.value), len(paths) == 1
    changed: ast.AST = statement
    if not is_alone and (container or kinds.is_trained_leaf(reference.value)):
        return
    if container:
        layers = "" if text in ("{}", "dict()") else text
        changed, new = value, f"{_torch_nn(code, reference.owner)}.{container}({layers})"
        key = "fixed.container-of-parameters" if container.startswith("Parameter") else "fixed.container"
        help = sentence(key, container=container, code=f"{target} = {one_line(new)}")
    elif not is_tensor(reference.value) or (is_literal(value) and text != "None"):
        return
    elif kinds.is_trained_leaf(reference.value):
        required = match_code("$x.requires_grad_()", value)  # every parameter does
        data = code.text(required["x"] if required is not None else value)
        new = f"{target} = {_torch_nn(code, reference.owner)}.Parameter({data})"
        help = sentence("fixed.parameter", code=one_line(new))
    else:
        owner = target.rpartition(".")[0]
        is_updated, classes = _is_updated(code, statement, target), classes_of(type(reference.owner))
        if is_updated and is_alone and any("add_state" in class_dict(kind) for kind in classes):  # of a metric
            new = f'{owner}.add_state("{reference.key}", default={text}, dist_reduce_fx="sum")'
            help = sentence("fixed.state", code=one_line(new))
        else:
            content = text if is_alone else "None"  # `self.n, self.table = n, None` gives the buffer its value then
            new = f'{owner}.register_buffer("{reference.key}", {content}{"" if is_updated else ", persistent=False"})'
            help = sentence("fixed.buffer", code=one_line(new))
    trains = bool(container) or kinds.is_trained_leaf(reference.value)
    edit = code.replaced(changed, new) if is_alone else code.above(statement, new)
    yield from (replace(fix, trains=trains) for fix in suggested(help, edit, moved=moved))


def _is_updated(code: Code, statement: ast.stmt, attribute: str) -> bool:
    """Return whether another line of the class updates the attribute: `self.mean = 0.9 * self.mean`."""
    classes = (body for body in nodes_of(ast.ClassDef, code.source.tree) if statement in ast.walk(body))
    for node in itertools.chain.from_iterable(map(ast.walk, classes)):
        others = (target for line in only(ast.Assign, [node]) if line is not statement for target in targets(line))
        values = (target.value for target in others if path_of(target.node) == attribute)
        if any(attribute in paths_in(value) for value in values) or is_written(node, attribute):
            return True
    return False


def _container_of(value: Any) -> str:
    """Return torch's container for modules or parameters: "ModuleList" for `[conv, norm]`, "" for `3`."""
    items = items_of(value)
    of_parameters = all(map(kinds.is_parameter, items))
    of_modules = all(map(kinds.is_module, items))
    is_dict = type(value) is dict
    if not items or not (of_parameters or of_modules) or (is_dict and any(type(key) is not str for key in value)):
        return ""
    return ("Parameter" if of_parameters else "Module") + ("Dict" if is_dict else "List")


def _torch_nn(code: Code, owner: Any) -> str:
    """Return the file's own name for torch.nn; of a cell that has none, the name in the class's globals."""
    values = (value for klass in classes_of(type(owner)) for value in class_dict(klass).values())
    namespace = next((method.__globals__ for method in values if type(method) is FunctionType), {})
    names = (name for name, value in namespace.items() if type(value) is ModuleType and value.__name__ == "torch.nn")
    return code.source.known_as("torch.nn") or next(names, "torch.nn")
