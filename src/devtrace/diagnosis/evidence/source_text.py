"""The statement around a site, and the names that it assigns."""

import ast
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site

_SIMPLE: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


def statement_site(queries: TraceQueries, site: int) -> Site | None:
    """Return a site for a reader: the whole simple statement if it begins on the site's line, a block's first line."""
    row, found = queries.site(site), queries.source_node(site)
    if row is None or found is None:
        return row
    if not isinstance(found.statement, _SIMPLE):
        return row if found.node is not found.statement else _first_line(row)
    whole = queries.site_in(found.source, found.statement, row)
    return replace(whole, function=row.function) if whole.line == row.line else row


def _first_line(row: Site) -> Site:
    text = row.text.split("\n")[0]
    return replace(row, end_line=row.line, end_column=row.column + len(text.encode()), text=text)


def assigned_names(found: SourceNode, index: int = 0) -> list[str]:
    """Return the names that a statement assigns a value to: `q` and `k` of `q, k = x.chunk(2)`.

    `index` is the value's position where one call gives several.
    """
    statement = found.statement
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return []
    names = []
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        if isinstance(target, ast.Tuple | ast.List):
            values = statement.value.elts if isinstance(statement.value, ast.Tuple | ast.List) else None
            at = next((i for i, part in enumerate(values) if part is found.node), None) if values else index
            if at is not None and at < len(target.elts) and (values or statement.value is found.node):
                names.append(found.source.segment(target.elts[at]))
        elif statement.value is found.node:
            names.append(found.source.segment(target))
    return names


def name_by_its_line(queries: TraceQueries, site: int, row: int) -> str:
    """Return the recorded name of a tensor, else that of the variable which its line assigns."""
    recorded = str(queries.trace.tensors.raw("name", row))
    found = queries.source_node(site)
    if recorded or found is None:
        return recorded
    names = assigned_names(found)
    if not names and isinstance(found.statement, ast.Assign) and len(found.statement.targets) == 1:
        names = [found.source.segment(found.statement.targets[0])]
    return names[0] if names else ""
