"""`DataLoader(..., pin_memory=True)`, without which `non_blocking=True` has no effect; and the latter, beside it."""

from __future__ import annotations

import ast
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.fixes.fix import Fix, fix_if_complete
from devtrace.source.matching import assigned_names, called_name, keyword, match_code, names_in
from devtrace.words.catalogue import sentence

_ROUND: Final = ("enumerate", "tqdm", "iter")


def pin_loader(queries: TraceQueries, line: int) -> Fix | None:
    """Let the loader whose batches a line moves put them in pinned memory."""
    found, loader = _moved_from(queries, line)
    site = queries.site(line)
    if found is None or loader is None or site is None or keyword(loader, "pin_memory") is not None:
        return None
    code = Code(found.source, site)
    return fix_if_complete(
        sentence("fixed.pin-loader"), code.replaced(loader, code.with_argument(loader, "pin_memory=True"))
    )


def not_block(queries: TraceQueries, line: int) -> Fix | None:
    """Let a line move a loader's batch, which is pinned, while the CPU goes on."""
    found, loader = _moved_from(queries, line)
    site = queries.site(line)
    if found is None or loader is None or site is None or keyword(loader, "pin_memory") is None:
        return None
    code, call = Code(found.source, site), found.node
    if not isinstance(call, ast.Call) or keyword(call, "non_blocking") is not None:
        return None
    new = code.with_argument(call, "non_blocking=True")
    return fix_if_complete(sentence("fixed.not-block", code=new), code.replaced(call, new))


def _moved_from(queries: TraceQueries, line: int) -> tuple[SourceNode | None, ast.Call | None]:
    """Return the line, `x.to(device)` of what a loop takes from a loader, and the call that makes the loader."""
    found = queries.source_node(line)
    moved = match_code("$x.to(...)", found.node) if found is not None else None
    if found is None or moved is None or not isinstance(moved["x"], ast.Name) or queries.package(line):
        return None, None
    loops = (outer for outer in found.source.ancestors(found.statement) if isinstance(outer, ast.For))
    loop = next((each for each in loops if moved["x"].id in names_in(each.target)), None)
    return (found, _loader(found, loop)) if loop is not None else (None, None)


def _loader(found: SourceNode, loop: ast.For) -> ast.Call | None:
    taken = loop.iter
    while called_name(taken) in _ROUND and isinstance(taken, ast.Call) and taken.args:
        taken = taken.args[0]
    if isinstance(taken, ast.Name):
        body = found.source.function(loop) or found.source.tree
        given = [node for node in ast.walk(body) if isinstance(node, ast.Assign) and taken.id in assigned_names(node)]
        taken = given[0].value if len(given) == 1 and isinstance(given[0].targets[0], ast.Name) else taken
    return taken if isinstance(taken, ast.Call) and called_name(taken) == "DataLoader" else None
