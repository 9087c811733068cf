"""Mends of what a module holds: buffers, lists of layers, parts attached late, modules sent away."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.moves import Move
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix, called, code_at, code_of, made
from devtrace.diagnosis.fixes.held_objects import fellows
from devtrace.source.reading import read
from devtrace.words.text_format import one_line


def register(case: Case, verdict: Verdict) -> Fix | None:
    """`self.register_buffer("x", ..., persistent=False)`, `nn.ModuleList([...])`, `nn.ModuleDict()`."""
    if verdict.name is None or verdict.module is None or len(verdict.module.holds) >= len(verdict.name.holds):
        return None
    at = len(verdict.module.holds)
    hold, value = verdict.name.holds[at], verdict.name.objects[at]
    if hold.kind == "module":  # a plain object's attribute further down
        place = next((i for i in range(at, len(verdict.name.holds)) if verdict.name.holds[i].kind == "attribute"), -1)
        hold, value = verdict.name.holds[place], verdict.name.objects[place]
    if hold.kind != "attribute" or not access_paths.is_module(hold.owner):
        return None
    found = _registering(case, hold.owner, hold.text.lstrip("."), value)
    if found is None or hold is not verdict.name.last:
        return found
    beside = [
        _registering(case, hold.owner, one.last.text.lstrip("."), one.objects[-1]) for one in _beside(case, verdict)
    ]
    return Fix(found.help, (*found.edits, *(edit for fix in beside if fix is not None for edit in fix.edits)))


def _beside(case: Case, verdict: Verdict) -> Iterator[AccessPath]:
    """The other plain attributes of the same module that the failing function needs."""
    assert verdict.name is not None
    yield from (name for name in fellows(case, verdict.name) if name.last.kind == "attribute")


def _registering(case: Case, owner: Any, attribute: str, value: Any) -> Fix | None:
    for code, statement in assignments(case.queries, owner, attribute):
        found = _registered(code, statement, value, attribute)
        if found is not None:
            return found
    return None


def assignments(queries: TraceQueries, owner: Any, attribute: str) -> Iterator[tuple[Code, ast.Assign]]:
    """Where the methods of an object's class say `self.attribute = ...`."""
    for klass in type(owner).__mro__[:-1]:
        code = next((value.__code__ for value in vars(klass).values() if hasattr(value, "__code__")), None)
        source = read(code.co_filename) if code is not None else None
        if code is None or source is None or "-packages/" in code.co_filename:
            continue
        like = next((site for site in queries.trace.sites if site.file == code.co_filename), None)
        place = Site.of(like) if like is not None else Site(code.co_filename, 0)
        for body in ast.walk(source.tree):
            if isinstance(body, ast.ClassDef) and body.name == klass.__name__:
                for node in ast.walk(body):
                    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_own(node.targets[0], attribute):
                        yield Code(source, place), node


def _is_own(node: ast.expr, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.value, ast.Name)


def _registered(code: Code, statement: ast.Assign, value: Any, attribute: str) -> Fix | None:
    said, right = code.text(statement.targets[0]), code.text(statement.value)
    if access_paths.is_tensor(value):
        if isinstance(statement.value, ast.Constant):
            return None
        new = f'{said.rpartition(".")[0]}.register_buffer("{attribute}", {right}, persistent=False)'
        return made(f"register it as a buffer: {one_line(new)}", code.replaced(statement, new))
    nn = _nn(code)
    if type(value) is list and _all_modules(value):
        new = f"{nn}.ModuleList({right})"
    elif type(value) is dict and _all_modules(list(value.values())) and all(type(key) is str for key in value):
        new = f"{nn}.ModuleDict()" if right in ("{}", "dict()") else f"{nn}.ModuleDict({right})"
    else:
        return None
    kind = new.split("(")[0].rpartition(".")[2]
    return made(f"keep the layers in a {kind}: {said} = {one_line(new)}", code.replaced(statement.value, new))


def _all_modules(values: list[Any]) -> bool:
    return bool(values) and all(access_paths.is_module(value) for value in values)


def _nn(code: Code) -> str:
    """What the file calls torch.nn."""
    for node in ast.walk(code.source.tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if alias.name == "nn" and isinstance(node, ast.ImportFrom) and node.module == "torch":
                return alias.asname or "nn"
            if alias.name == "torch.nn" and alias.asname:
                return alias.asname
    return "torch.nn"


def move_when_attached(case: Case, verdict: Verdict) -> Fix | None:
    """Move the part where it is attached, or the model again in the frame that holds it."""
    return _move_again(case, verdict) or _move_at_birth(case, verdict)


def _move_again(case: Case, verdict: Verdict) -> Fix | None:
    """`model.head.to(device)` below the line that attached it, where that line and the move are in one frame."""
    if verdict.name is None or verdict.module is None or verdict.move is None:
        return None
    name = verdict.name
    stand = FailingFrame.of(case.snapshot, name.frame, case.expected_device)
    if stand is None:
        return None
    statement = _attaching(case, verdict, stand)
    if statement is None:
        return None
    line = stand.code.source.span(statement).end_line + 1
    device = _as_before(case, verdict.move, stand) or stand.set_up_device(line)
    part = _part(verdict)
    if not device or part is None:
        return None
    new = f"{part}.to({device})"
    return made(
        f"add `{new}` below line {line - 1}, or move all of it after attaching", stand.code.below(statement, new)
    )


def _as_before(case: Case, move: Move, stand: FailingFrame) -> str:
    """What the move was told, where a frame's own function made it: `device` of `model.to(device)`."""
    found = code_at(case, move.site)
    if found is None or found[1].source.function(found[1].node) is not stand.place.source.function(stand.place.node):
        return ""
    told = _told(found[1])
    return stand.code.text(told) if told is not None and stand.says_home(told) else ""


def _told(move: SourceNode) -> ast.expr | None:
    """`device` of `model.to(device)`."""
    node = move.node
    return node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None


def _part(verdict: Verdict) -> str | None:
    """The module to move again, as code; the whole when the odd one is its own parameter."""
    assert verdict.module is not None
    return code_of(verdict.module)


def _attaching(case: Case, verdict: Verdict, stand: FailingFrame) -> ast.stmt | None:
    """The statement of a frame, after the move, that attached the part: by itself or by a function that it calls."""
    born = case.queries.site(verdict.born)
    moved = case.queries.site(verdict.move.site) if verdict.move is not None else None
    if born is None:
        return None
    span = stand.code.source.span
    same = stand.code.site.file == born.file and stand.code.site.cell_id == born.cell_id
    function = (born.function or "").replace("<locals>.", "").split(".")
    above = [
        statement
        for statement in sorted(stand.statements(), key=lambda statement: span(statement).line)
        if isinstance(statement, ast.Assign | ast.Expr | ast.AugAssign) and span(statement).line <= stand.line
    ]
    attached = [statement for statement in above if _assigns(stand, statement, verdict)]
    if attached:
        return attached[-1]
    at_birth = [one for one in above if same and span(one).line <= born.line <= span(one).end_line]
    if at_birth:
        return at_birth[0]
    for statement in above:
        where = span(statement)
        after = moved is None or moved.file != stand.code.site.file or where.line > moved.line
        if (
            after
            and _mentions(statement, verdict)
            and (set(function) & called(statement) or _is_helper(case, statement, stand))
        ):
            return statement
    return None


def _assigns(stand: FailingFrame, statement: ast.stmt, verdict: Verdict) -> bool:
    """`model.bank = ...`, where `model.bank` or a part of it is the odd one."""
    assert verdict.name is not None
    assert verdict.module is not None
    name = verdict.name
    least = len(verdict.module.holds) + 1
    paths = {code_of(AccessPath(name.holds[:end], (), "")) for end in range(least, len(name.holds) + 1)}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(stand.code.text(target) in paths for target in targets)


def _mentions(statement: ast.stmt, verdict: Verdict) -> bool:
    assert verdict.name is not None
    root = verdict.name.holds[0].text
    return any(isinstance(node, ast.Name) and node.id == root for node in ast.walk(statement))


def _is_helper(case: Case, statement: ast.stmt, stand: FailingFrame) -> bool:
    """Whether a statement hands the model to a function of the user's as a plain argument."""
    value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return False
    given = [argument.id for argument in value.args if isinstance(argument, ast.Name)]
    return any(access_paths.is_module(stand.held.get(name)) for name in given)


def _move_at_birth(case: Case, verdict: Verdict) -> Fix | None:
    """`owner.head = nn.Linear(...)` gets `.to(device)` as an earlier cell said it, else a device of the owner's."""
    found = code_at(case, verdict.born)
    if found is None or verdict.name is None:
        return None
    code, place = found
    statement = place.statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute | ast.Subscript):
        return None
    function = place.source.function(place.node)
    if getattr(function, "name", "") == "__init__":
        return None
    owner = code.text(statement.targets[0].value)
    device = _as_an_earlier_cell(case, verdict, place) or f"next({owner}.parameters()).device"
    parameter = verdict.name.last.kind == "parameter" and len(verdict.name.objects) >= 2
    if parameter and _is_parameter_call(statement.value):
        inner = statement.value.args[0]  # type: ignore[attr-defined]
        new = code.moved_to(inner, device)
        return made(f"make it on the model's device: {one_line(new)}", code.replaced(inner, new))
    new = code.moved_to(statement.value, device)
    return made(
        f"move it as you attach it: {code.text(statement.targets[0])} = {one_line(new)}",
        code.replaced(statement.value, new),
    )


def _as_an_earlier_cell(case: Case, verdict: Verdict, born: SourceNode) -> str:
    """The variable of the notebook that the move was told, for a part that another cell attached: `device`."""
    found = code_at(case, verdict.move.site) if verdict.move is not None else None
    stand = (
        FailingFrame.of(case.snapshot, verdict.name.frame, case.expected_device) if verdict.name is not None else None
    )
    if found is None or stand is None:
        return ""
    code, moved = found
    cells = [site is not None and site.cell is not None for site in (code.site, case.queries.site(verdict.born))]
    in_cells = all(cells) and not any(each.source.function(each.node) for each in (moved, born))
    told = _told(moved)
    return told.id if in_cells and isinstance(told, ast.Name) and stand.says_home(told) else ""


def _is_parameter_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and bool(node.args) and called(ast.Expr(node)) >= {"Parameter"}


def bring_back(case: Case, verdict: Verdict) -> Fix | None:
    """After the line that sent the module away, or the call of the function that did: `model.to(device)`."""
    away = case.queries.site(verdict.sent_by.site) if verdict.sent_by is not None else None
    if away is None or verdict.module is None:
        return None
    for name in case.names:
        root = next((place for place, _ in name.modules() if name.registered_from(place)), None)
        stand = FailingFrame.of(case.snapshot, name.frame, case.expected_device)
        said = code_of(AccessPath(name.holds[: root + 1], (), "")) if root is not None else None
        found = _after_the_errand(stand, said, away) if stand is not None and said else None
        if found is not None:
            return found
    return None


def _after_the_errand(stand: FailingFrame, said: str, away: Site) -> Fix | None:
    span = stand.code.source.span
    function = away.function.rpartition(".")[2]
    for statement in stand.statements():
        if not isinstance(statement, ast.Assign | ast.Expr):
            continue
        here = away.file == stand.code.site.file and span(statement).line <= away.line <= span(statement).end_line
        if here or (function and function in called(statement)):
            device = stand.set_up_device(span(statement).end_line + 1)
            if device:
                return made(f"bring it back: {said}.to({device})", stand.code.below(statement, f"{said}.to({device})"))
    return None
