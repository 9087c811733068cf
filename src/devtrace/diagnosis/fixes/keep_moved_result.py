"""`x.to(device)` on a line of its own becomes `x = x.to(device)`."""

from __future__ import annotations

import ast

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, SiteCode, code_at, fix_if_complete
from devtrace.source.matching import assigned_names, match_code
from devtrace.words.text_format import one_line


def keep_moved_result(case: Case, verdict: Verdict) -> Fix | None:
    """Assign what the move returns."""
    found = code_at(case, verdict.moved) if verdict.dropped else None
    if found is None or not isinstance(found.statement, ast.Expr):
        return None
    call = match_code("$x.$move(...)", found.statement.value)
    if call is None or _is_loop_variable(found, call["x"]):
        return None
    new = f"{found.code.text(call['x'])} = {found.code.text(found.statement.value)}"
    return fix_if_complete(f"keep what .to() returns: {one_line(new)}", found.code.replaced(found.statement, new))


def _is_loop_variable(found: SiteCode, node: ast.expr) -> bool:
    """Return whether it is the variable of a loop around: a new value for it would not reach the loop's list."""
    loops = (outer for outer in found.code.source.ancestors(found.statement) if isinstance(outer, ast.For))
    return isinstance(node, ast.Name) and any(node.id in assigned_names(loop.target) for loop in loops)
