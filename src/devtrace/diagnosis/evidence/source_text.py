"""The statement around a site, the names that it assigns, and what a class assigns to an attribute.

Of cells that nobody recorded the source tells which statement made a tensor (`birth`).
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, SourceNode, TraceQueries
from devtrace.diagnosis.evidence.trait import Trait
from devtrace.diagnosis.findings import Site
from devtrace.source.defuse import ASSIGNMENTS, Binding, bindings, binds, given_by, statements, targets
from devtrace.source.kinds import users_file
from devtrace.source.live_objects import CellText
from devtrace.source.matching import called_names, listed, names_in, nodes_of, only
from devtrace.source.parsing import NO_SOURCE, Source, parameters, parse, read
from devtrace.source.safe_values import classes_of, code_in
from devtrace.source.user_code import owner_of
from devtrace.trace.ids import SiteId, TensorId
from devtrace.words.text_format import one_line, shorten

_LONGEST: Final = 60
_SIMPLE: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


def statement_site(queries: TraceQueries, site: SiteId) -> Site | None:
    """Return a site for a reader: the whole simple statement if it begins on the site's line, a block's first line."""
    place = queries.source_node(site)
    if place is NOWHERE:
        return queries.site(site)
    recorded = place.code.site
    if not isinstance(place.statement, _SIMPLE):
        head = recorded.text.split("\n")[0]
        of_head = replace(recorded, end_line=recorded.line, end_column=recorded.column + len(head.encode()), text=head)
        return recorded if place.node is not place.statement else of_head
    whole = place.code.site_of(place.statement)
    return replace(whole, function=recorded.function) if whole.line == recorded.line else recorded


def assigned_names(place: SourceNode, index: int = 0) -> list[str]:
    """Return the names that a statement gives its call's value: `["k"]` for `q, k = x.chunk(2)` and `index` 1."""
    names = list[ast.expr]()
    for target in (target for statement in only(ASSIGNMENTS, [place.statement]) for target in targets(statement)):
        parts, values = listed(target.node), listed(target.value)
        if parts != [target.node] and values != [target.value]:  # `a, b = f(x), g(x)`
            names += [part for part, value in zip(parts, values, strict=False) if value is place.node]
        elif target.value is place.node and not target.is_inner:
            names += parts if parts == [target.node] else parts[index : index + 1]
    return list(map(place.source.segment, names))


def name_by_its_line(queries: TraceQueries, site: SiteId, row: TensorId) -> str:
    """Return the recorded name of a tensor, else that of the variable which its line assigns."""
    if recorded := str(queries.trace.tensors.raw("name", row)):
        return recorded
    place = queries.source_node(site)
    names = assigned_names(place)
    match place.statement:
        case ast.Assign(targets=[target]) if not names:
            return place.source.segment(target)
    return names[0] if names else ""


def brief(text: str) -> str:
    """Return code as a message quotes it: on one line, and no longer than that."""
    return shorten(one_line(text), _LONGEST)


def assignments(queries: TraceQueries, owner: Any, attribute: object, *, to_read: bool = False) -> Iterator[SourceNode]:
    """Yield the values of `self.attribute = ...` in the user's own classes of an object, base classes first.

    A plain attribute of a base class cannot become a buffer; a buffer takes later assignments. `to_read`: in packages'
    classes, too. For an imported file the values that its own lines give the name.
    """
    if file := users_file(owner):
        source = read(file)
        for binding in bindings(source, source.tree, str(attribute)):
            yield SourceNode(Code(source, Site(file, 0)), binding.own or binding.value, binding.statement)
        return
    for klass in reversed(classes_of(type(owner))[:-1]):
        code = code_in(klass)
        may_read = code is not None and (to_read or owner_of(code.co_filename) == "user")
        source = read(code.co_filename) if code is not None and may_read else NO_SOURCE
        if source is NO_SOURCE:
            continue
        in_trace = next((site for site in queries.trace.sites if site.file == source.file), None)
        site = Site.of(in_trace) if in_trace is not None else Site(source.file, 0)
        for body in nodes_of(ast.ClassDef, source.tree):
            for statement in only(ASSIGNMENTS, nodes_of(ast.stmt, body) if body.name == klass.__name__ else ()):
                for path, binding in given_by(source, statement):
                    if path.partition(".")[2] == attribute:
                        yield SourceNode(Code(source, site), binding.own or binding.value, statement)


def bound_above(place: SourceNode, variable: str) -> ast.stmt | None:
    """Return the last statement above another one of its block that gives a variable its value."""
    block = place.source.block(place.statement)
    above = [earlier for earlier in block if earlier.lineno < place.statement.lineno and variable in binds(earlier)]
    return above[-1] if above else None


def only_assignment(queries: TraceQueries, owner: Any, attribute: object) -> SourceNode:
    """Return the only assignment of an attribute in the user's classes."""
    found = list(assignments(queries, owner, attribute))
    return found[0] if len(found) == 1 else NOWHERE


def stays_there(variable: str, statement: ast.stmt, by: Trait) -> bool:
    """Return whether a statement computes a variable from itself, and does not move it: `x = self.layer(x)`."""
    value = getattr(statement, "value", None)
    return value is not None and variable in names_in(value) and not any(map(by.is_given_by, called_names(value)))


# Births in cells without a recording.

_MADE = (ast.Call, ast.BinOp, ast.UnaryOp, ast.ListComp)


def birth(cells: Sequence[CellText], running: str, name: str, kind: str = "") -> Site | None:
    """Return the statement that made the tensor `name`: `mask`, `model.schedule.betas`.

    `kind` is the class of its owner, `running` the file of the cell that runs now: a name that it gave a value has no
    birth here. Inferred and never seen: the newest cell that gives the name a value, if that value is computed there. A
    name that a loop, a `with` or a plain alias gives its value tells nothing.
    """
    if running not in (cell.file for cell in cells):
        return None
    setter, attribute = given_in_cells(cells, name), name.rpartition(".")[2] if "." in name else ""
    if setter is not None:
        cell, source, binding = setter
        return _site_if_computed(cell, source, binding) if cell.file != running else None
    return _birth_in_class(cells, kind, attribute) if kind and attribute else None


def given_in_cells(cells: Sequence[CellText], name: str) -> tuple[CellText, Source, Binding] | None:
    """Return the newest cell's statement that gives a name its value, and that cell."""
    for cell, source, statement in newest_first(cells):
        binding = dict(given_by(source, statement)).get(name)
        if binding is not None:
            return cell, source, binding
        if name.partition(".")[0] in binds(statement):
            break
    return None


def site_in_cell(cell: CellText, source: Source, node: ast.AST, function: str = "") -> Site:
    return Site(cell.file, *source.span(node), function, source.segment(node), cell.number, cell.cell_id)


def newest_first(cells: Sequence[CellText]) -> Iterator[tuple[CellText, Source, ast.stmt]]:
    for cell in reversed(cells):
        source = parse(cell.text, cell.file, cell.first) or NO_SOURCE
        yield from ((cell, source, statement) for statement in reversed([*statements(source.tree)]))


def _birth_in_class(cells: Sequence[CellText], kind: str, attribute: str) -> Site | None:
    """Return the only statement of a class that gives its objects an attribute."""
    for cell, source, node in newest_first(cells):
        if isinstance(node, ast.ClassDef) and node.name == kind:
            paths = [(method, f"{own}.{attribute}") for method in node.body for own in parameters(method)[:1]]
            setters = [(method, binding) for method, path in paths for binding in bindings(source, method, path)]
            names = [f"{kind}.{getattr(method, 'name', '')}" for method, _ in setters]
            return _site_if_computed(cell, source, setters[0][1], names[0]) if len(setters) == 1 else None
    return None


def _site_if_computed(cell: CellText, source: Source, binding: Binding, function: str = "") -> Site | None:
    """Return the site of a statement, if its value is computed there."""
    if binding.loops or isinstance(binding.statement, ast.With) or not isinstance(binding.own or binding.value, _MADE):
        return None
    return site_in_cell(cell, source, binding.statement, function)
