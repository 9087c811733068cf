"""Evidence inferred from the source of a program without a recording: verdicts on it are only probable."""

import ast
from typing import Final

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.source_text import only_assignment, statement_site
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix, failing_frame
from devtrace.diagnosis.slugs import CauseSlug
from devtrace.source.flow import LOOPS, statements, values_given
from devtrace.source.kinds import is_module
from devtrace.source.matching import called_name, nodes_of
from devtrace.source.object_walk import hooks_of
from devtrace.source.parsing import NamedFunction
from devtrace.source.safe_values import is_around, run_by

_WAYS: Final = (*LOOPS, ast.If, ast.Try, ast.Match, ast.IfExp, ast.BoolOp, ast.Yield, ast.YieldFrom)
_BY_HOOKS: Final[tuple[CauseSlug, ...]] = ("attached-after-move", "not-registered")
"""Causes whose moves and attachments the hooks see, recorded or not."""


def is_only_read(case: MismatchCase, verdict: Verdict) -> bool:
    """Return whether a verdict rests on the source alone, without evidence from hooks."""
    may_be_read = verdict.kind not in _BY_HOOKS or case.queries.certainty(case.row) == "inferred"
    return may_be_read and not case.queries.evidence.saw_ops


def changes_a_guess(case: MismatchCase, verdict: Verdict, fix: Fix) -> bool:
    """Return whether a fix edits a creation line that is only inferred from the source.

    No guess: a line of a function that still runs, of a module's hook, or of a function without branches that one of
    these calls; and the only assignment of an attribute in its class.
    """
    born = statement_site(case.queries, verdict.born)
    is_seen = verdict.cause == "not-registered" or case.queries.certainty(case.row) == "seen"
    if not fix.edits or born is None or is_seen:
        return False
    lines = range(born.line, max(born.end_line, born.line) + 1)
    guessed = any(edit.file == born.file and edit.cell == born.cell and edit.line in lines for edit in fix.edits)
    if not guessed or case.moment.frame_of(born) is not None or _is_in_a_hook(case, born):
        return False
    if _is_of_a_plain_call(case, verdict):
        return False
    given = _only_assignment(case, verdict.name)
    return given is None or (given.code.site.file, given.source.span(given.statement).line) != (born.file, born.line)


def _is_of_a_plain_call(case: MismatchCase, verdict: Verdict) -> bool:
    """Return whether a function without branches created it, called by the variable's only assignment.

    hidden = net.begin(len(x))     # a line of a live frame; a property that such a line reads counts as well
    """
    found = case.queries.source_node(verdict.born)
    function = found.function if found is not None else None
    if not isinstance(function, NamedFunction) or not _has_one_way(function):
        return False
    for name in case.names:
        frame, variable = case.frame_of(name), name.references[0].text
        bound = frame.bindings(variable) if frame is not None else []
        value = values_given(frame.source, bound[0]).get(variable) if frame is not None and len(bound) == 1 else None
        if value is not None and called_name(value) == function.name:
            return True
    frame = failing_frame(case)
    read = nodes_of(ast.Attribute, frame.expression) if frame is not None and function.decorator_list else ()
    return not case.names and any(each.attr == function.name for each in read)


def _has_one_way(function: NamedFunction) -> bool:
    """Return whether a function has no branch and no loop, and returns once."""
    found = list(statements(function))
    returns = nodes_of(ast.Return, *found)
    return not any(type(each) in _WAYS for each in (*found, *nodes_of(ast.expr, function))) and len({*returns}) == 1


def _is_in_a_hook(case: MismatchCase, site: Site) -> bool:
    """Return whether a line is in a hook of a live module, which torch has called."""
    modules = [each for each in case.moment.walk.objects.values() if is_module(each)]
    hooks = [hook for each in modules for before in (True, False) for hook, _ in hooks_of(each, before=before)]
    name = site.function.rpartition(".")[2]
    return any(is_around(function, name, site.file, site.line) for hook in hooks for function in run_by(hook))


def _only_assignment(case: MismatchCase, name: AccessPath | None) -> SourceNode | None:
    """Return the only assignment of the named attribute in its class; None if there are several."""
    last = name.last if name is not None else None
    is_own = last is not None and last.kind == "attribute"
    return only_assignment(case.queries, last.owner, last.key) if last is not None and is_own else None


def birth_by_name(case: MismatchCase) -> Site | None:
    """Return the line that assigned a tensor's name, as `x = load(file)`, if its creation is unknown."""
    queries = case.queries
    if queries.of == "device" or queries.evidence.saw_ops:
        return None
    for name in sorted(case.names, key=lambda each: len(each.references)):
        if (given := _only_assignment(case, name)) is not None:
            return given.code.site_of(given.statement)
        bound = case.binding_of(name) if name.last.kind != "attribute" else None
        if bound is not None:
            return bound[0].code.site_of(bound[1])
    return None
