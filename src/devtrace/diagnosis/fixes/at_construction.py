"""An object that was made without its device is given one: `Estimator()` becomes `Estimator(device=x.device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import NamedTuple

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import names_trait
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.fixes.fix import Fix, made_at, suggested
from devtrace.source.flow import bindings, own_name, parameters
from devtrace.source.matching import called_name, calls_in, given_trait, keyword, match_code, names_in, variable
from devtrace.source.parsing import read
from devtrace.source.safe_values import class_dict, classes_of, instance_dict
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


class _Attribute(NamedTuple):
    """Attribute in which a method reads its object's device: `device` of `torch.zeros(n, device=self.device)`."""

    file: str
    function: str
    name: str


def hand_device_to_constructor(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Give the object whose device a line reads that device where it is made, if its class takes one and has none."""
    read_at = _attribute_read(case)
    if read_at is None:
        return
    for frame in FailingFrame.all_of(case.snapshot, case.expected_device):
        for name, owner in frame.variables.items():
            bound = frame.bindings(name) if _has(owner, read_at, case.odd_device) else []
            made = getattr(bound[0], "value", None) if len(bound) == 1 else None
            if isinstance(made, ast.Call) and called_name(made) == type(owner).__name__:
                parameter = _parameter_for(read_at, owner, made)
                yield from _given(case, frame, made, parameter, read_at) if parameter else ()


def _given(case: Case, frame: FailingFrame, call: ast.Call, parameter: str, read_at: _Attribute) -> Iterator[Fix]:
    device = frame.setup_device_code(frame.source.span(call).line)
    new = frame.code.with_argument(call, parameter, device)
    moved = made_at(case, lambda node: node.source.file == read_at.file and _read_in(node) == read_at.name)
    help = sentence("fixed.give-device", code=one_line(new))
    yield from suggested(help, frame.code.replaced(call, new), moved=moved)


def _attribute_read(case: Case) -> _Attribute | None:
    """Return the attribute by which the line that made the odd tensor, or sent it there, names the device."""
    found = case.queries.op_node(case.origin.op)
    name = _read_in(found) if found is not None else ""
    return _Attribute(found.code.site.file, found.code.site.function, name) if found is not None and name else None


def _read_in(found: SourceNode) -> str:
    """Return `device` of `torch.zeros(n, device=self.device)` and of `x.to(self.device)`."""
    own = own_name(found.source, found.node)
    given = (match_code("$own.$name", given_trait(call)) for call in calls_in(found.node))
    return next((each["name"] for each in given if each is not None and variable(each["own"]) == own != ""), "")


def _has(owner: object, read_at: _Attribute, device: str) -> bool:
    """Return whether an object's class has the method, and the object's own attribute names the device.

    A module has been moved since, or can be: where its parameters are is asked of them.
    """
    if access_paths.is_module(owner) or not names_trait(instance_dict(owner).get(read_at.name), device):
        return False
    methods = (class_dict(kind).get(read_at.function.rpartition(".")[2]) for kind in classes_of(type(owner)))
    codes = (each.__code__ for each in methods if type(each) is FunctionType)
    return any((code.co_filename, code.co_qualname) == (read_at.file, read_at.function) for code in codes)


def _parameter_for(read_at: _Attribute, owner: object, call: ast.Call) -> str:
    """Return the constructor's parameter that becomes the attribute, if a call has not given it; else nothing."""
    made = next((each for kind in classes_of(type(owner)) if (each := class_dict(kind).get("__init__"))), None)
    code = made.__code__ if type(made) is FunctionType else None
    source = read(code.co_filename) if code is not None else None
    function = source.body_of(code) if source is not None and code is not None else None
    if source is None or function is None or None in {each.arg for each in call.keywords}:
        return ""
    own, *names = parameters(function)
    taken = names_in(*(each.value for each in bindings(source, function, f"{own}.{read_at.name}")))
    left = names[len(call.args) :] if ast.Starred not in map(type, call.args) else []
    free = (name for name in left if keyword(call, name) is None and name in taken)
    return next((name for name in free if "device" in (name, read_at.name)), "")
