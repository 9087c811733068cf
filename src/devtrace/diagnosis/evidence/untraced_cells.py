"""Births in cells without a recording: the statement in a notebook that made a name's tensor.

The source tells, so a birth from here is inferred and never seen: the newest cell that gives the name a value, if that
value is computed there. A name that a loop, a `with` or a plain alias gives its value tells nothing.
"""

import ast
from collections.abc import Iterator, Sequence

from devtrace.diagnosis.findings import Site
from devtrace.source.flow import Binding, bindings, binds, given_by, parameters, statements
from devtrace.source.live_objects import CellText
from devtrace.source.parsing import Source, parse

_MADE = (ast.Call, ast.BinOp, ast.UnaryOp, ast.ListComp)


def birth(cells: Sequence[CellText], running: str, name: str, kind: str = "") -> Site | None:
    """Return the statement that made the tensor `name`: `mask`, `model.schedule.betas`.

    `kind` is the class of its owner, `running` the file of the cell that runs now: a name that it gave a value has no
    birth here.
    """
    if running not in (cell.file for cell in cells):
        return None
    root, attribute = name.partition(".")[0], name.rpartition(".")[2] if "." in name else ""
    for cell, source, statement in _newest_first(cells):
        given = dict(given_by(source, statement)).get(name)
        if given is not None:
            return _site(cell, source, given) if cell.file != running else None
        if root in binds(statement):
            break
    return _of_class(cells, kind, attribute) if kind and attribute else None


def _newest_first(cells: Sequence[CellText]) -> Iterator[tuple[CellText, Source, ast.stmt]]:
    for cell in reversed(cells):
        source = parse(cell.text, cell.file, cell.first)
        if source is not None:
            yield from ((cell, source, each) for each in reversed([*statements(source.tree)]))


def _of_class(cells: Sequence[CellText], kind: str, attribute: str) -> Site | None:
    """Return the only statement of a class that gives its objects an attribute."""
    for cell, source, node in _newest_first(cells):
        if isinstance(node, ast.ClassDef) and node.name == kind:
            methods = [(each, own) for each in node.body for own in parameters(each)[:1]]
            found = [(each, given) for each, own in methods for given in bindings(source, each, f"{own}.{attribute}")]
            names = [f"{kind}.{getattr(method, 'name', '')}" for method, _ in found]
            return _site(cell, source, found[0][1], names[0]) if len(found) == 1 else None
    return None


def _site(cell: CellText, source: Source, given: Binding, function: str = "") -> Site | None:
    """Return the site of a statement, if its value is computed there."""
    if given.loops or isinstance(given.statement, ast.With) or not isinstance(given.own or given.value, _MADE):
        return None
    text = source.segment(given.statement)
    return Site(cell.file, *source.span(given.statement), function, text, cell.number, cell.cell_id)
