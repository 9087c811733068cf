"""Edits that copy less often: a move above its loop, a table that is kept where it was moved to, pinned batches."""

from __future__ import annotations

import ast
from typing import Final

from devtrace.costs.copies import whole_of
from devtrace.costs.loops import assigned_to, loops_around
from devtrace.costs.repeated_costs import Habit
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.fix import Fix, suggested
from devtrace.source.flow import own_name, parameters, path_of
from devtrace.source.matching import (
    assigned_names,
    called_name,
    keyword,
    match_code,
    names_in,
    variable,
)
from devtrace.words.catalogue import sentence

_APART: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.IfExp)
_TABLE: Final = 1 << 20
"""Bytes of a table that is moved as a whole."""
_ROUND: Final = ("enumerate", "tqdm", "iter")


# `weights.to(device)` in a loop becomes `weights = weights.to(device)` above it.


def move_above_loop(habit: Habit) -> Edit | None:
    """Return the edit, if the variable is the function's own and has its value above the loop.

    Of `table[i].to(device)` all of a small table is moved: a schedule, not a data set.
    """
    found, code = habit.found, habit.code
    moved = match_code("$x.$move(...)", found.node) if found is not None else None
    if found is None or code is None or moved is None or moved["move"] not in habit.queries.move_methods:
        return None
    loops, name = loops_around(found), variable(whole_of(moved["x"]))
    if not loops or not name or not (variable(moved["x"]) or _is_of_a_small_table(habit)):
        return None
    if name in assigned_names(loops[-1]) or not _is_own(found, name):
        return None
    moving = _above(found, code, loops[-1], name, habit.target)
    return code.above(loops[-1], f"{name} = {moving}") if moving else None


def _is_of_a_small_table(habit: Habit) -> bool:
    """Return whether all are parts of one tensor: `x[i]` may be an item of a dictionary."""
    bases = {habit.queries.base(row) for row in habit.carried if habit.queries.base(row) != row}
    return len(bases) == 1 and habit.queries.trace.tensors[bases.pop()].bytes <= _TABLE


def _is_own(found: SourceNode, name: str) -> bool:
    """Return whether a function may give the variable another value; a cell may one of an earlier cell's."""
    function = found.source.function(found.node)
    return function is None or name in (*parameters(function, starred=True), *assigned_names(function))


def _above(found: SourceNode, code: Code, loop: ast.stmt, name: str, target: str) -> str:
    """Return the move as it can be written above the loop: as it is, else to the device that it named in the end."""
    given = names_in(*found.node.args, *found.node.keywords)  # type: ignore[attr-defined]
    if given.isdisjoint(assigned_names(loop)):
        return f"{name}.{code.method_call(found.node)}"
    to = match_code("$x.to($y.device)", found.node)
    return f'{name}.to("{target}")' if to is not None and target else ""


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
    """Return the edit, if what the line names has its value above it: nothing of a comprehension does."""
    found, code = habit.found, habit.code
    path = attribute_moved(found) if found is not None else ""
    if found is None or code is None or not path or "[" in path:
        return None
    is_apart = any(isinstance(outer, _APART) for outer in found.source.ancestors(found.node))
    if is_apart or not isinstance(found.statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign):
        return None
    return code.above(found.statement, f"{path} = {path}.{code.method_call(found.node)}")


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
