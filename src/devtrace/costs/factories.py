"""Tensors that a step makes of nothing but factories: constants, and numbers that are drawn at random."""

import ast
from typing import Final

import numpy as np

from devtrace.costs.repeated_costs import SAMPLE, Habit
from devtrace.costs.writes import first_write
from devtrace.diagnosis.evidence.origins import FROM_DATA
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.source.flow import bindings
from devtrace.source.matching import is_path, names_in, nodes_of, same_code
from devtrace.source.vocabulary import DRAWS, FILLS, TAKES_VALUES, full_name, of_tensors_alone
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.text_format import short_op_name

_MOST: Final = 12  # ops that a constant is made by
_CONSTANT: Final = frozenset(("fill_", "zero_"))
_FEW: Final = 4  # numbers that are drawn at a time; more may be a program's data
_NEVER_OF_TEXT: Final = (ast.Mult, ast.MatMult, ast.Sub, ast.Div, ast.Pow)
_FILLED: Final = 3  # times that it is filled in part


def steps_of(habit: Habit) -> list[tuple[OpId, OpId]]:
    """Return some of a line's ops, each after the one before it."""
    return list(zip(habit.ops[:-1], habit.ops[1:], strict=True))[:: len(habit.ops) // SAMPLE + 1]


def are_drawn(queries: TraceQueries, factories: list[list[OpId]]) -> bool:
    """Return whether one of the factories draws at random."""
    names = {short_op_name(queries.op_name(op)) for ops in factories for op in ops}
    return any(name in DRAWS | FILLS - _CONSTANT or name.startswith("rand") for name in names)


def is_drawn_from_nothing(habit: Habit) -> bool:
    """Return whether a line reads what each step draws by factories alone: a coin, a shift, the corner of a crop."""
    queries = habit.queries
    numbers = [pair for pair in steps_of(habit) if "_local_scalar_dense" in queries.op_name(pair[1])]
    made = [factories_of(queries, queries.inputs(op), op, since) for since, op in numbers]
    rows = [row for ops in made for op in ops for row in queries.outputs(op)]
    return bool(made) and all(made) and are_drawn(queries, made) and max(map(queries.size, rows), default=0) <= _FEW


def asked_by_move(habit: Habit, given: ast.expr) -> tuple[str, str]:
    """Return the device, and the dtype if it is given too, that a factory is to be asked for in place of a move.

    `.to(device)` asks for the one, `.to(other)` for both of another tensor.
    """
    text = habit.code.text(given) if habit.code is not None else ""
    return (f"{text}.device", f"{text}.dtype") if _is_tensor(habit, given) else (text, "")


def _is_tensor(habit: Habit, given: ast.expr) -> bool:
    """Return whether a path leads to a tensor in a line's function: an op gave it its value, or it is used as one."""
    found, site = habit.found, habit.queries.site(habit.line)
    if found is None or site is None or not is_path(given):
        return False
    body = found.function or found.source.tree
    lines = habit.queries.trace.sites.ints("line")[habit.queries.sites_beside(site)]
    made = [each.own for each in bindings(found.source, body, found.code.text(given))]
    spans = [found.source.span(each) for each in made if each is not None and not is_path(each)]
    if any(np.any((span.line <= lines) & (lines <= span.end_line)) for span in spans):
        return True
    read = (each.value for each in nodes_of(ast.Attribute, body) if each.attr in of_tensors_alone())
    mixed = (each for each in nodes_of(ast.BinOp, body) if type(each.op) in _NEVER_OF_TEXT)
    return any(
        same_code(each, given) for each in (*read, *(side for each in mixed for side in (each.left, each.right)))
    )


def factories_of(
    queries: TraceQueries, rows: list[TensorId], op: OpId, since: OpId, device: int | None = None
) -> list[OpId]:
    """Return the factories' ops that inputs of an op come from alone, none of them before `since`; else nothing.

    All of it was made on the device, if one is given.
    """
    queue, found = list(rows), list[OpId]()
    for row in queue:
        maker = queries.producer(row)
        taken = queries.inputs(maker) if maker > since else []
        is_new = maker > since and device in (None, queries.trace.ops.number("device", maker))
        filled = _fillings(queries, queries.base(row), maker, op) if is_new and len(queue) <= _MOST else None
        if filled is None:
            return []
        is_of_old = all(queries.producer(each) < since for each in taken)
        is_drawn = short_op_name(queries.op_name(maker)) in DRAWS and is_of_old
        if not taken or is_drawn:
            is_data = any(part in queries.op_name(maker) for part in FROM_DATA)
            if is_data or not (is_drawn or queries.kind(maker) == "create"):
                return []
            found += [maker, *filled]
            continue
        queue += [each for each in taken if each not in queue]
    return found


def _fillings(queries: TraceQueries, base: TensorId, maker: OpId, op: OpId) -> list[OpId] | None:
    """Return the ops that fill a tensor or a part with constants, `mask[:2] = 0`; None if something else writes."""
    found: list[OpId] = []
    at = maker
    while (at := first_write(queries, [base], at, op)) >= 0:
        code = queries.op_node(at)
        if code is None or len(found) == _FILLED or short_op_name(queries.op_name(at)) not in FILLS:
            return None
        given = getattr(code.node, "args", [getattr(code.statement, "value", code.node)])
        if any(not full_name(ast.Name(name), code.source) for name in names_in(*given) - TAKES_VALUES):
            return None
        found.append(at)
    return found
