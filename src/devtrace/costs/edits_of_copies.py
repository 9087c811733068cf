"""Edits that copy less often: a move above its loop, a table that is kept where it was moved to, pinned batches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.costs.copies import whole_of
from devtrace.costs.loops import assigned_to, loops_around, uses_of
from devtrace.costs.repeated_costs import Habit
from devtrace.costs.writes import are_written
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Edit, Site
from devtrace.diagnosis.fixes.fix import Fix, suggested
from devtrace.source.flow import own_name, parameters, path_of
from devtrace.source.matching import (
    assigned_names,
    called_name,
    calls_in,
    is_given,
    is_read,
    keyword,
    match_code,
    names_in,
    nodes_of,
    same_code,
    variable,
)
from devtrace.source.parsing import Source, parse
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence

_APART: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.IfExp)
_TABLE: Final = 1 << 20
"""Bytes of a table that is moved as a whole."""
_ROUND: Final = ("enumerate", "tqdm", "iter")


# `weights.to(device)` in a loop becomes `weights = weights.to(device)` above it.


def move_above_loop(habit: Habit) -> Edit | None:
    """Return the edit, if the variable is bound above the loop and nowhere else used as it was.

    Of `table[i].to(device)` all of a small table is moved that stays as it is: a schedule, not a data set.
    """
    found, code = habit.found, habit.code
    moved = match_code("$x.$move(...)", found.node) if found is not None else None
    if found is None or code is None or moved is None or moved["move"] not in habit.queries.move_methods:
        return None
    loops, name = loops_around(found), variable(whole_of(moved["x"]))
    is_of_a_cell = code.site.cell is not None and found.source.function(found.node) is None
    if not loops or not name or not (variable(moved["x"]) or _is_of_a_small_table(habit)):
        return None
    if not _is_safe(found, loops[-1], name, is_of_a_cell):
        return None
    if is_of_a_cell and any(_uses_it_as_it_is(text, found, name) for text in _other_cells(habit, code.site)):
        return None
    moving = _above(found, code, loops[-1], name, habit.target)
    return code.above(loops[-1], f"{name} = {moving}") if moving else None


def _is_of_a_small_table(habit: Habit) -> bool:
    """Return whether the line takes the parts itself, of one tensor: `x[i]` may be an item of a dictionary."""
    queries, rows = habit.queries, habit.carried
    lines = {queries.op_user(queries.producer(row)) for row in rows if queries.producer(row) >= 0}
    bases = {queries.base(row) for row in rows if queries.base(row) != row}
    is_small = len(bases) == 1 and all(queries.trace.tensors[base].bytes <= _TABLE for base in bases)
    taken = {site.line for each in lines if (site := queries.site(each)) is not None}
    here = queries.site(habit.site)
    is_taken_here = here is not None and taken == {here.line}
    return is_small and is_taken_here and not are_written(queries, bases, OpId(min(habit.ops) - 1), max(habit.ops))


def _other_cells(habit: Habit, site: Site) -> Iterator[str]:
    """Yield the text of the other cells: they have the same variables."""
    cells = habit.queries.snapshot.cells
    yield from (each.text for each in habit.queries.trace.sources if each.cell_id and each.cell_id != site.cell_id)
    yield from (cell.text for cell in cells if cell.file != site.file)


def _uses_it_as_it_is(text: str, found: SourceNode, name: str) -> bool:
    """Return whether another cell uses the variable and does not move it as this one does."""
    source = parse(text)
    if source is None:
        return name in text
    uses = [use for use in nodes_of(ast.Name, source.tree) if use.id == name and is_read(use)]
    return not all(_is_moved_alike(source, found.node, use) for use in uses)


def _above(found: SourceNode, code: Code, loop: ast.stmt, name: str, target: str) -> str:
    """Return the move as it can be written above the loop: as it is, else to the device that it named in the end."""
    given = names_in(*found.node.args, *found.node.keywords)  # type: ignore[attr-defined]
    if given.isdisjoint(assigned_names(loop)):
        return f"{name}.{code.method_call(found.node)}"
    to = match_code("$x.to($y.device)", found.node)
    return f'{name}.to("{target}")' if to is not None and target else ""


def _is_safe(found: SourceNode, loop: ast.stmt, name: str, is_of_a_cell: bool) -> bool:
    """Return whether the variable has its value above the loop, and is from there on only moved as here.

    An earlier cell may have given it.
    """
    source, function, uses = found.source, found.source.function(found.node), uses_of(found, name)
    begin = source.span(loop).line
    above = [use for use in uses or () if source.span(use).line < begin and source.function(use) is function]
    taken = parameters(function, starred=True) if function is not None else []
    is_bound = name in taken or any(map(is_given, above))
    return (
        uses is not None
        and (is_bound or (is_of_a_cell and not above))
        and all(_is_moved_alike(source, found.node, use) for use in uses if use not in above)
        and all(inner is found.node for inner in calls_in(found.node))
    )


def _is_moved_alike(source: Source, move: ast.AST, use: ast.Name) -> bool:
    return any(same_code(outer, move) for outer in source.ancestors(use))


# `self.table[:n].to(x.device)` in each call: `self.table = self.table.to(x.device)` above it moves the table once.


def attribute_moved(found: SourceNode) -> str:
    """Return `self.table` if a line moves that or a part of it, `self.all["table"]` too; else an empty text."""
    moved = match_code("$x.to(...)", found.node)
    whole = whole_of(moved["x"]) if moved is not None else None
    of = whole.value if isinstance(whole, ast.Subscript) else whole
    owner, name = path_of(of).partition(".")[::2] if of is not None else ("", "")
    is_own = name.isidentifier() and owner == own_name(found.source, found.node)
    return found.source.segment(whole) if is_own and whole is not None else ""


def keep_moved_attribute(habit: Habit) -> Edit | None:
    """Return the edit, if all that the file does with the attribute is to move it so."""
    found, code = habit.found, habit.code
    path = attribute_moved(found) if found is not None else ""
    if found is None or code is None or not path or "[" in path:
        return None
    name = path.partition(".")[2]
    nodes = (node for node in nodes_of(ast.Attribute, found.source.tree) if node.attr == name)
    uses = [node for node in nodes if is_read(node)]
    is_apart = any(isinstance(outer, _APART) for outer in found.source.ancestors(found.node))
    if is_apart or not isinstance(found.statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign):
        return None
    if not all(_is_moved(found.source, use) for use in uses):
        return None
    return code.above(found.statement, f"{path} = {path}.{code.method_call(found.node)}")


def _is_moved(source: Source, use: ast.Attribute) -> bool:
    """Return whether a use of the attribute, or of a part of it, is no more than the object of `.to(...)`."""
    outer: ast.AST | None = use
    while isinstance(above := source.parent(outer), ast.Subscript) and above.value is outer:  # type: ignore[arg-type]
        outer = above
    return isinstance(above, ast.Attribute) and match_code("$x.to(...)", source.parent(above)) is not None


# `DataLoader(..., pin_memory=True)`, without which `non_blocking=True` has no effect; and the latter, beside it.


def pin_loader(habit: Habit) -> Fix | None:
    """Let the loader whose batches a line moves put them in pinned memory."""
    loader, code = _loader(habit), habit.code
    if loader is None or code is None or keyword(loader, "pin_memory") is not None:
        return None
    edit = code.replaced(loader, code.with_argument(loader, "pin_memory", "True"))
    return next(suggested(sentence("fixed.pin-loader"), edit), None)


def not_block(habit: Habit) -> Fix | None:
    """Let a line move a loader's batch, which is pinned, while the CPU goes on."""
    loader, code = _loader(habit), habit.code
    if loader is None or code is None or habit.found is None or keyword(loader, "pin_memory") is None:
        return None
    call = habit.found.node
    if not isinstance(call, ast.Call) or keyword(call, "non_blocking") is not None:
        return None
    new = code.with_argument(call, "non_blocking", "True")
    return next(suggested(sentence("fixed.not-block", code=new), code.replaced(call, new)), None)


def _loader(habit: Habit) -> ast.Call | None:
    """Return the call that makes the loader, from which a loop takes the `x` of the line `x.to(device)`."""
    moved = match_code("$x.to(...)", habit.found.node) if habit.found is not None else None
    name = variable(moved["x"]) if moved is not None else ""
    if habit.found is None or not name:
        return None
    loops = (loop for loop in loops_around(habit.found, (ast.For,)) if name in names_in(loop.target))  # type: ignore[attr-defined]
    taken: ast.expr | None = next((loop.iter for loop in loops), None)  # type: ignore[attr-defined]
    while isinstance(taken, ast.Call) and called_name(taken) in _ROUND and taken.args:
        taken = taken.args[0]
    if variable(taken):
        given = assigned_to(habit.found, variable(taken))
        taken = given[0] if len(given) == 1 else None
    return taken if isinstance(taken, ast.Call) and called_name(taken) == "DataLoader" else None
