"""`model.to(device)` after the line that sent the module away, or after the call of the function that did."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix, frame_of, moved_below, registering_root, suggested
from devtrace.source.matching import called_names, calls_in
from devtrace.source.safe_values import classes_of, evaluate
from devtrace.words.catalogue import sentence


def bring_module_back(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move the module to the expected device again."""
    sent = case.queries.site(verdict.sent_by.site) if verdict.sent_by is not None else None
    if sent is None or verdict.module is None:
        return
    roots = [(root, frame_of(case, name)) for name in case.names if (root := registering_root(name)) is not None]
    known = [(frame, root) for root, frame in roots if frame is not None]
    for frame, root in known:
        yield from _after_the_move(case, frame, root, sent)
    for frame, root in known[:1]:
        yield from _in_words(frame, root)


def _after_the_move(case: Case, frame: FailingFrame, root: AccessPath, sent: Site) -> Iterator[Fix]:
    span = frame.source.span
    function = sent.function.rpartition(".")[2]
    for statement in frame.statements():
        if not isinstance(statement, ast.Assign | ast.Expr):
            continue
        here = sent.file == frame.code.site.file and span(statement).line <= sent.line <= span(statement).end_line
        if here or (function and function in called_names(statement)) or _builds_one(frame, statement, sent):
            yield from _moved_between(case, frame, root, statement)


def _moved_between(case: Case, frame: FailingFrame, root: AccessPath, statement: ast.stmt) -> Iterator[Fix]:
    """Move the module below a statement; else above the failing one, if what is between needs it where it is."""
    span, failing = frame.source.span, frame.source_node.statement
    for line, edit in (
        (span(statement).end_line, frame.code.below),
        (span(failing).line - 1, frame.code.above),
    ):
        device = frame.setup_device_code(line + 1)
        if device and root.code:
            new = f"{root.code}.to({device})"
            moved = moved_below(case, frame, line, root)
            where = statement if edit == frame.code.below else failing
            yield from suggested(sentence("fixed.bring-back", code=new), edit(where, new), moved=moved)


def _in_words(frame: FailingFrame, root: AccessPath) -> Iterator[Fix]:
    device = frame.setup_device_code(frame.line)
    if device and root.code:
        yield Fix(sentence("fixed.bring-back", code=f"{root.code}.to({device})"))


def _builds_one(frame: FailingFrame, statement: ast.stmt, sent: Site) -> bool:
    """Return whether a statement makes an object whose class sent the module away as it was built."""
    built = [evaluate(call.func, frame.scope()) for call in calls_in(statement)]
    classes = (each for kind in built if isinstance(kind, type) for each in classes_of(kind))
    return any(f"{each.__qualname__}.__init__".endswith(f"{sent.function}") for each in classes if "." in sent.function)
