"""`model.head.to(device)` below the line that attached the head to a model that had moved before."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.fix import (
    Fix,
    Moved,
    SiteCode,
    code_at,
    frame_of,
    moved_below,
    suggested,
    tensors_below,
)
from devtrace.source.matching import assigned_names, called_names, match_code, names_in, run_names
from devtrace.source.object_walk import registered
from devtrace.source.safe_values import Scope, evaluate
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def move_below_attachment(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Add `model.head.to(device)` below the line that attached it, in the frame that holds the model."""
    frame = frame_of(case, verdict.name)
    if frame is None or verdict.name is None or verdict.module is None or verdict.move is None:
        return
    statement = _attaching_statement(case, verdict, frame)
    if statement is None:
        return
    line = frame.source.span(statement).end_line
    device = _device_of_move(case, verdict, frame) or frame.setup_device_code(line + 1)
    path = verdict.module.code
    if not device or path is None:
        return
    new = f"{path}.to({device})"
    help = sentence("fixed.attached", code=new, line=line)
    moved = moved_below(case, frame, line, verdict.module)
    yield from suggested(help, frame.code.below(statement, new), moved=moved)


def _device_of_move(case: Case, verdict: Verdict, frame: FailingFrame) -> str:
    """Return `device` of `model.to(device)`, where the move is in the frame's own function."""
    found = code_at(case, verdict.moved)
    argument = _device_argument(found) if found is not None and found.function is frame.function else None
    return frame.code.text(argument) if argument is not None and frame.names_expected_device(argument) else ""


def _device_argument(move: SiteCode) -> ast.expr | None:
    """Return `device` of `model.to(device)`."""
    return move.node.args[0] if isinstance(move.node, ast.Call) and len(move.node.args) == 1 else None


def _attaching_statement(case: Case, verdict: Verdict, frame: FailingFrame) -> ast.stmt | None:
    """Return the statement of a frame that attached the part: by itself, or by a function that it calls."""
    if case.queries.site(verdict.born) is None:
        return None
    line_of = {statement: frame.source.span(statement).line for statement in frame.statements()}
    above = [
        statement
        for statement, line in sorted(line_of.items(), key=lambda each: each[1])
        if isinstance(statement, ast.Assign | ast.Expr | ast.AugAssign) and line <= frame.line
    ]
    return (
        _assigning(above, case, verdict, frame)
        or _making(above, case, verdict, frame)
        or _calling(above, case, verdict, frame)
    )


def _assigning(above: Sequence[ast.stmt], case: Case, verdict: Verdict, frame: FailingFrame) -> ast.stmt | None:
    """Return the last `model.bank = ...`, where `model.bank`, a part of it or what is beside it is the odd one."""
    assert verdict.name is not None
    assert verdict.module is not None
    below = range(len(verdict.module.references) + 1, len(verdict.name.references) + 1)
    paths = {verdict.name.prefix(length).code for length in below}
    paths |= {each.code for each in case.snapshot.beside(verdict.name) if tensors_below(case, each)}
    assigning = (
        statement
        for statement in reversed(above)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [])
        if frame.code.text(target) in paths
    )
    return next(assigning, None)


def _making(above: Sequence[ast.stmt], case: Case, verdict: Verdict, frame: FailingFrame) -> ast.stmt | None:
    """Return the statement that made the part, or the one that then gave it to the module."""
    assert verdict.name is not None
    born, span = case.queries.site(verdict.born), frame.source.span
    if born is None or (frame.code.site.file, frame.code.site.cell_id) != (born.file, born.cell_id):
        return None
    made = next((each for each in above if span(each).line <= born.line <= span(each).end_line), None)
    model, names = verdict.name.references[0].text, set(assigned_names(made)) if made is not None else set()
    if made is None or not names or model in names_in(made):
        return made
    later = (each for each in above if span(made).end_line < span(each).line < frame.line)
    return next((each for each in later if model in names_in(each) and names & names_in(each)), made)


def _calling(above: Sequence[ast.stmt], case: Case, verdict: Verdict, frame: FailingFrame) -> ast.stmt | None:
    """Return the first statement below the move that hands the model to a function that may have attached the part."""
    assert verdict.name is not None
    born, moved = case.queries.site(verdict.born), case.queries.site(verdict.moved)
    if born is None or _was_kept_first(case, verdict):
        return None
    same_file = moved is not None and moved.file == frame.code.site.file
    first_line = moved.line + 1 if moved is not None and same_file else 0
    makers = set(born.function.split("."))  # `Builder.<locals>.attach`
    model = verdict.name.references[0].text
    below = (each for each in above if frame.source.span(each).line >= first_line and model in names_in(each))
    return next((each for each in below if makers & run_names(each) or _passes_module(each, frame)), None)


def _was_kept_first(case: Case, verdict: Verdict) -> bool:
    """Return whether what replaced a parameter was an attribute of another object before: `self.shadow = {...}`."""
    found = code_at(case, verdict.born) if case.ownership is not None and case.ownership.was_replaced else None
    targets = found.statement.targets if found is not None and isinstance(found.statement, ast.Assign) else []
    return any(isinstance(target, ast.Attribute) for target in targets)


def _passes_module(statement: ast.stmt, frame: FailingFrame) -> bool:
    """Return whether a statement calls a function of the user's with a module as a plain argument."""
    call = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    arguments = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
    return any(access_paths.is_module(frame.variables.get(name)) for name in arguments)


def move_as_attached(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Write `owner.head = nn.Linear(...).to(device)`, with the device of an earlier cell or of the owner."""
    found = code_at(case, verdict.born)
    if found is None or verdict.name is None or getattr(found.function, "name", "") == "__init__":
        return
    code, statement = found.code, found.statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute | ast.Subscript):
        return
    owner = _owner_on_the_device(case, statement.targets[0].value)
    device = _device_of_earlier_cell(case, verdict, found)
    if not device and owner is not None:
        device = f"next({code.text(owner)}.parameters()).device"
    if not device:
        return
    is_parameter = verdict.name.last.kind == "parameter" and len(verdict.name.references) >= 2
    inner = _parameter_data(statement.value) if is_parameter else None
    if inner is not None:
        new = code.moved_to(inner, device)
        edit = code.replaced(inner, new)
        yield from suggested(sentence("fixed.on-models-device", code=one_line(new)), edit, moved=_made(case, found))
        return
    new = code.moved_to(statement.value, device)
    help = sentence("fixed.as-attached", code=f"{code.text(statement.targets[0])} = {one_line(new)}")
    yield from suggested(help, code.replaced(statement.value, new), moved=_made(case, found))


def move_as_registered(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Write `layer.register_buffer("mask", keep(layer).to(device))`, which holds in each round of a loop."""
    frame = frame_of(case, verdict.name)
    if frame is None or verdict.name is None or verdict.name.last.kind != "buffer":
        return
    for statement in frame.statements():
        value = statement.value if isinstance(statement, ast.Expr) else None
        found = match_code("$owner.register_buffer(...)", value)
        call, line = value, frame.source.span(statement).line
        if found is None or not isinstance(call, ast.Call) or len(call.args) < 2 or line > frame.line:
            continue
        name, tensor = call.args[:2]
        device = _device_of_move(case, verdict, frame) or frame.setup_device_code(line)
        if isinstance(name, ast.Constant) and name.value == verdict.name.last.key and device:
            new = frame.code.text_with(call, tensor, frame.code.moved_to(tensor, device))
            help = sentence("fixed.as-registered", code=one_line(new))
            moved = moved_below(case, frame, line, verdict.name)
            yield from suggested(help, frame.code.replaced(call, new), moved=moved)


def _owner_on_the_device(case: Case, owner: ast.expr) -> ast.expr | None:
    """Return the code of the nearest owner that has more than what was attached: `self` of `self.pool["a"] = ...`.

    Where no frame tells what the code stands for, the owner is believed to have.
    """
    scopes = [Scope.of(frame) for frame in case.snapshot.frames]
    code: ast.expr | None = owner
    while code is not None:
        found = (evaluate(code, scope) for scope in scopes)
        modules = [each for each in found if access_paths.is_module(each) and _is_an_owner(case, each)]
        if not modules:
            return code
        if any(case.is_expected(case.snapshot.row(tensor)) for _, tensor in registered(modules[0])):
            return code
        code = code.value if isinstance(code, ast.Attribute | ast.Subscript) else None
    return None


def _is_an_owner(case: Case, module: object) -> bool:
    return any(module is owner for name in case.names for _, owner in name.modules())


def _made(case: Case, found: SiteCode) -> Iterator[Moved]:
    """Yield what a statement made, by itself or by what it calls: the tensors of the part that it attached."""
    assert isinstance(found.statement, ast.Assign)
    target = found.code.text(found.statement.targets[0]).rpartition(".")[2]
    for name in case.names:
        for length in range(1, len(name.references) + 1):
            part = name.prefix(length)
            if part.texts[-1].lstrip(".") == target or length == len(name.references):
                for row in tensors_below(case, part):
                    yield Moved(row, case.queries.producer(case.queries.base(row)))
                break


def _device_of_earlier_cell(case: Case, verdict: Verdict, born: SiteCode) -> str:
    """Return the notebook's variable that the move in another cell took its device from: `device`."""
    moved, frame = code_at(case, verdict.moved), frame_of(case, verdict.name)
    if moved is None or frame is None:
        return ""
    in_cells = all(each.code.site.cell is not None and each.function is None for each in (moved, born))
    device = _device_argument(moved)
    is_variable = in_cells and isinstance(device, ast.Name) and frame.names_expected_device(device)
    return device.id if is_variable and isinstance(device, ast.Name) else ""


def _parameter_data(node: ast.expr) -> ast.expr | None:
    """Return `x` of `nn.Parameter(x)`, the call alone or within other calls."""
    is_call = isinstance(node, ast.Call) and bool(node.args) and "Parameter" in called_names(node)
    return node.args[0] if is_call and isinstance(node, ast.Call) else None
