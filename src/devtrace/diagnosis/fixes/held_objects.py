"""Mends of what the user's own objects, batches and optimizers hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.fixes.fix import Fix, code_at, code_of, made
from devtrace.words.text_format import one_line


def keep_the_result(case: Case, verdict: Verdict) -> Fix | None:
    """`x.to(device)` on a line of its own becomes `x = x.to(device)`."""
    found = code_at(case, verdict.moved) if verdict.dropped else None
    if found is None or not isinstance(found[1].statement, ast.Expr):
        return None
    code, place = found
    call = found[1].statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if _is_of_a_loop(place, call.func.value):
        return None
    new = f"{code.text(call.func.value)} = {code.text(call)}"
    return made(f"keep what .to() returns: {one_line(new)}", code.replaced(place.statement, new))


def _is_of_a_loop(place: SourceNode, node: ast.expr) -> bool:
    """Whether it is the variable of a loop around: another value for it changes nothing of what is looped over."""
    outer = place.source.parent(place.statement)
    while outer is not None and isinstance(node, ast.Name):
        if isinstance(outer, ast.For) and any(
            isinstance(target, ast.Name) and target.id == node.id for target in ast.walk(outer.target)
        ):
            return True
        outer = place.source.parent(outer)
    return False


def move_beside(case: Case, verdict: Verdict) -> Fix | None:
    """Below the line that moved its neighbour: the same for this one, with the same arguments."""
    found = code_at(case, verdict.move.site) if verdict.move is not None else None
    if found is None or verdict.name is None or not isinstance(found[1].statement, ast.Assign):
        return None
    code, place = found
    call = place.node
    stand = FailingFrame.of(case.snapshot, verdict.name.frame, case.expected_device)
    if stand is None or not isinstance(call, ast.Call) or place.source.function(call) is not _function(stand):
        return None
    said = code_of(verdict.name)
    if said is None or not _assignable(verdict.name) or not isinstance(call.func, ast.Attribute):
        return None
    if verdict.name.last.owner is None and any(name.last.owner is not None for name in case.names):
        return None  # something else keeps what the variable held
    arguments = ", ".join(code.text(part) for part in (*call.args, *call.keywords))
    new = f"{said} = {said}.{call.func.attr}({arguments})"
    return made(f"move it as its neighbours: {new}", code.below(place.statement, new))


def _function(stand: FailingFrame) -> ast.AST | None:
    return stand.place.source.function(stand.place.node)


def _assignable(name: AccessPath) -> bool:
    """Whether the last step of a name may stand on the left: not in a tuple, not behind a property."""
    return name.last.owner is None or not issubclass(type(name.last.owner), tuple)


def move_below(case: Case, verdict: Verdict) -> Fix | None:
    """Below the line that gives the user's variable its value: move what it holds, if it holds it by then."""
    for name in [verdict.name, *case.names, *(name for _, name in case.roots)]:
        below = name is not None and len(name.holds) > 1 and not _made_in_a_call(case, name)
        found = _moved_below(case, verdict, name) if name is not None and below else None
        if found is not None:
            return found
    return None


def _made_in_a_call(case: Case, name: AccessPath) -> bool:
    """Whether what is named was made by a module at work, as a cache is."""
    row = case.snapshot.row(name.objects[-1])
    op = case.queries.producer(case.queries.base(row)) if row is not None else -1
    return op >= 0 and case.queries.trace.ops.number("call", op) >= 0


def _moved_below(case: Case, verdict: Verdict, name: AccessPath) -> Fix | None:
    stand = FailingFrame.of(case.snapshot, name.frame, case.expected_device)
    bound = stand.bindings(name.holds[0].text)[-1:] if stand is not None else []
    if stand is None or not bound:
        return None
    statement, span = bound[0], stand.code.source.span(bound[0])
    device = stand.set_up_device(span.end_line + 1)
    lines = _moving_lines(case, name, device) if device else []
    if not lines:
        return None
    if isinstance(statement, ast.Assign):
        return made(f"add `{lines[0]}` below line {span.end_line}", stand.code.below(statement, *lines))
    if isinstance(statement, ast.For | ast.With):
        return made(f"add `{lines[0]}` at the top of the block", stand.code.into(statement, *lines))
    return None


def _moving_lines(case: Case, name: AccessPath, device: str) -> list[str]:
    """Code that moves what a name leads to: the whole module that owns it, else the tensor and its fellows."""
    root = next((place for place, _ in name.modules() if name.registered_from(place)), None)
    if root is not None:
        said = code_of(AccessPath(name.holds[: root + 1], name.objects[: root + 1], ""))
        return [f"{said}.to({device})"] if said else []
    if not _assignable(name):
        return []
    texts = [code_of(fellow) for fellow in (name, *fellows(case, name))]
    return [f"{text} = {text}.to({device})" for text in texts if text]


def fellows(case: Case, name: AccessPath) -> Iterator[AccessPath]:
    """Tensors beside it, on the same wrong device, that the failing function speaks of too."""
    spoken = set(case.snapshot.frames[0].f_code.co_names) if case.snapshot.frames else set()
    for fellow in case.snapshot.beside(name):
        row = case.snapshot.row(fellow.objects[-1])
        if row is None or case.queries.device(row) != case.odd_device or case.queries.dims[row] == 0:
            continue
        if fellow.last.kind == "item" or fellow.last.text.lstrip(".") in spoken:
            yield fellow


def swap(case: Case, verdict: Verdict) -> Fix | None:
    """The line that copies goes below the line that moves."""
    found = code_at(case, verdict.move.site) if verdict.move is not None else None
    for name in case.names:
        stand = FailingFrame.of(case.snapshot, name.frame, case.expected_device)
        bound = stand.bindings(name.holds[0].text)[-1:] if stand is not None else []
        if stand is None or not bound or found is None or found[1].source is not stand.place.source:
            continue
        early, moving = bound[0], found[1].statement
        if _may_swap(stand, early, moving):
            text = stand.code.text(early)
            edits = (stand.code.removed(early), stand.code.below(moving, *text.split("\n")))
            return made(f"move `{one_line(text)}` below `{one_line(stand.code.text(moving))}`", *edits)
    return None


def _may_swap(stand: FailingFrame, early: ast.stmt, moving: ast.stmt) -> bool:
    """Both are plain statements of one block, and the move needs nothing of what it would now come before."""
    source = stand.place.source
    if not isinstance(early, ast.Assign) or source.parent(early) is not source.parent(moving):
        return False
    first, last = source.span(early), source.span(moving)
    if first.line >= last.line or first.end_line != first.line:
        return False
    bound = {node.id for target in early.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    between = [s for s in stand.statements() if first.line < source.span(s).line <= last.end_line]
    used = {node.id for statement in between for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return not bound & used


def state_along(case: Case, verdict: Verdict) -> Fix | None:
    """Below the move: the optimizer's state goes along."""
    for name in case.names:
        place = next((i for i, value in enumerate(name.objects) if access_paths.is_optimizer(value)), None)
        found = code_at(case, verdict.move.site) if verdict.move is not None else None
        stand = FailingFrame.of(case.snapshot, name.frame, case.expected_device)
        if place is None or found is None or stand is None or found[1].source is not stand.place.source:
            continue
        said = code_of(AccessPath(name.holds[: place + 1], name.objects[: place + 1], ""))
        device = stand.set_up_device(stand.code.source.span(found[1].statement).end_line + 1)
        if said and device:
            lines = (
                f"for state in {said}.state.values():",
                f'    state.update({{k: v.to({device}) for k, v in state.items() if hasattr(v, "to")}})',
            )
            return made(
                "build the optimizer after the move, or move its state along",
                found[0].below(found[1].statement, *lines),
            )
    return None


def keep_it_here(case: Case, verdict: Verdict) -> Fix | None:
    """Above a line that writes into it: `self.sum = self.sum.to(x.device)`, which from then on does nothing."""
    stand = FailingFrame.of(case.snapshot, 0, case.expected_device)
    node = stand.node_of(case.odd_tensor) if stand is not None else None
    if stand is None or not isinstance(node, ast.Attribute | ast.Subscript):
        return None
    device = stand.home_beside(node)
    said = [stand.code.text(node), *_spoken_fellows(case, stand)]
    lines = [f"{one} = {one}.to({device})" for one in dict.fromkeys(said)] if device else []
    edit = stand.code.above(stand.place.statement, *lines) if lines else None
    return made(f"keep it where its updates are: {lines[0]}", edit) if edit is not None else None


def _spoken_fellows(case: Case, stand: FailingFrame) -> list[str]:
    """Tensors beside it, as the failing frame says them."""
    here = [name for name in case.names if name.frame == 0]
    beside = fellows(case, here[0]) if here and len(here[0].holds) > 1 else ()
    return [text for name in beside if (text := code_of(name))]
