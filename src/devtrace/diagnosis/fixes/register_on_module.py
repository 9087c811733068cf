"""`self.register_buffer("x", ..., persistent=False)`, `nn.ModuleList([...])`, `nn.ModuleDict()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix, fix_if_complete, siblings_on_odd_device
from devtrace.source.matching import match_code
from devtrace.source.object_walk import Reference, is_tensor
from devtrace.source.parsing import read
from devtrace.source.safe_values import classes_of
from devtrace.source.user_code import owner_of
from devtrace.words.text_format import one_line


def register_on_module(case: Case, verdict: Verdict) -> Fix | None:
    """Register the attribute that keeps the tensor from its module's `.to()`, and its siblings with it."""
    unregistered = unregistered_step(verdict)
    found = _registering(case, unregistered) if unregistered is not None else None
    if found is None or verdict.name is None or unregistered is not verdict.name.last:
        return found
    siblings = (name.last for name in siblings_on_odd_device(case, verdict.name) if name.last.kind == "attribute")
    fixes = [found, *(fix for reference in siblings if (fix := _registering(case, reference)) is not None)]
    return Fix(found.help, tuple(edit for fix in fixes for edit in fix.edits))


def unregistered_step(verdict: Verdict) -> Reference | None:
    """Return the step from a module that `.to()` does not take."""
    if verdict.name is None or verdict.module is None:
        return None
    below = verdict.name.references[len(verdict.module.references) :]
    if below and below[0].kind == "module":  # a plain object's attribute further down
        below = (*(reference for reference in below if reference.kind == "attribute"), verdict.name.last)
    is_attribute = below and below[0].kind == "attribute" and access_paths.is_module(below[0].owner)
    return below[0] if is_attribute else None


def _registering(case: Case, reference: Reference) -> Fix | None:
    for code, statement in assignments(case.queries, reference.owner, reference.key):
        found = _registered(code, statement, reference)
        if found is not None:
            return found
    return None


def assignments(queries: TraceQueries, owner: Any, attribute: str) -> Iterator[tuple[Code, ast.Assign]]:
    """Yield the statements `self.attribute = ...` in the user's own classes of an object."""
    for klass in classes_of(type(owner))[:-1]:
        code = next((value.__code__ for value in vars(klass).values() if hasattr(value, "__code__")), None)
        source = read(code.co_filename) if code is not None and owner_of(code.co_filename) == "user" else None
        if code is None or source is None:
            continue
        row = next((site for site in queries.trace.sites if site.file == code.co_filename), None)
        site = Site.of(row) if row is not None else Site(code.co_filename, 0)
        for body in ast.walk(source.tree):
            for node in ast.walk(body) if isinstance(body, ast.ClassDef) and body.name == klass.__name__ else ():
                found = match_code("$owner.$name = $value", node) or {}
                is_own = found.get("name") == attribute and isinstance(found["owner"], ast.Name)
                if is_own and isinstance(node, ast.Assign):
                    yield Code(source, site), node


def _registered(code: Code, statement: ast.Assign, reference: Reference) -> Fix | None:
    left, right = code.text(statement.targets[0]), code.text(statement.value)
    if is_tensor(reference.value):
        if isinstance(statement.value, ast.Constant):
            return None
        new = f'{left.rpartition(".")[0]}.register_buffer("{reference.key}", {right}, persistent=False)'
        return fix_if_complete(f"register it as a buffer: {one_line(new)}", code.replaced(statement, new))
    container = _module_container(reference.value)
    if not container:
        return None
    new = f"{_torch_nn(code)}.{container}({'' if right in ('{}', 'dict()') else right})"
    edit = code.replaced(statement.value, new)
    return fix_if_complete(f"keep the layers in a {container}: {left} = {one_line(new)}", edit)


def _module_container(value: Any) -> str:
    """Return the container of torch's for a list or dict of modules."""
    if type(value) is list and _all_modules(value):
        return "ModuleList"
    if type(value) is dict and _all_modules(list(value.values())) and all(type(key) is str for key in value):
        return "ModuleDict"
    return ""


def _all_modules(values: list[Any]) -> bool:
    return bool(values) and all(access_paths.is_module(value) for value in values)


def _torch_nn(code: Code) -> str:
    """Return the file's own name for torch.nn."""
    for node in ast.walk(code.source.tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if alias.name == "nn" and isinstance(node, ast.ImportFrom) and node.module == "torch":
                return alias.asname or "nn"
            if alias.name == "torch.nn" and alias.asname:
                return alias.asname
    return "torch.nn"
