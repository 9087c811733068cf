"""Tensors that a step makes of nothing but factories: constants, and numbers that are drawn at random.

What it makes on the CPU in each step, to be copied, the device can make.

z = torch.randn(8, 64).to(device)           # torch.randn(8, 64, device=device)
"""

import ast
from typing import Final

import numpy as np

from devtrace.costs.copies import source_text
from devtrace.costs.cost_findings import Needless
from devtrace.costs.repeated_costs import SAMPLE, Habit
from devtrace.costs.writes import first_write
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.origins import FROM_DATA
from devtrace.diagnosis.evidence.trace_queries import HOST, SourceNode, TraceQueries
from devtrace.diagnosis.findings import Culprit
from devtrace.source.matching import calls_in, keyword, match_code, names_in, nodes_of, same_code
from devtrace.source.vocabulary import DRAWS, FILLS, MAKES, MIXES, TAKES_VALUES, full_name, is_of_tensors_alone
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, short_op_name

_MOST: Final = 12  # ops that a constant is made by, or that lead from what is drawn to what it is added to
_CONSTANT: Final = frozenset(("fill_", "zero_"))
_FEW: Final = 4  # numbers that are drawn at a time; more may be a program's data
_NEVER_OF_TEXT: Final = (ast.Mult, ast.MatMult, ast.Sub, ast.Div, ast.Pow)
_FILLED: Final = 3  # times that it is filled in part
_ANCESTORS: Final = 40


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


def _asked_by_move(found: SourceNode, given: ast.expr) -> tuple[str, str]:
    """Return the device, and the dtype if it is given too, that a factory is to be asked for in place of a move.

    `.to(device)` asks for the one, `.to(other)` for both of another tensor.
    """
    text = found.code.text(given)
    return (f"{text}.device", f"{text}.dtype") if _is_tensor(found, given) else (text, "")


def _is_tensor(found: SourceNode, given: ast.expr) -> bool:
    """Return whether the line's function uses code as only a tensor can be used."""
    body = found.function or found.source.tree
    read = (each.value for each in nodes_of(ast.Attribute, body) if is_of_tensors_alone(each.attr))
    mixed = (each for each in nodes_of(ast.BinOp, body) if type(each.op) in _NEVER_OF_TEXT)
    sides = (side for each in mixed for side in (each.left, each.right))
    return any(same_code(each, given) for each in (*read, *sides))


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


def of_constants(habit: Habit) -> Needless | None:
    """Find what is copied in each step and comes from factories alone, by ops since the copy before."""
    if not habit.is_of_many_steps:
        return None
    queries, pairs = habit.queries, steps_of(habit)
    made = [factories_of(queries, queries.carried(op), op, since, queries.host) for since, op in pairs]
    if not all(made):
        return None
    first, is_drawn = made[0][0], are_drawn(queries, made)
    is_of_a_layer = int(queries.trace.ops.ints("call")[first]) >= 0  # a program draws its own data before
    if is_drawn and not is_of_a_layer and not _is_noise(habit, first) and not _joins_what_is_there(habit, pairs):
        return None  # a program's own data may be drawn too
    new = _made_there(habit)
    code = one_line(new) or f"torch.{short_op_name(queries.op_name(first))}(..., device=...)"
    why = sentence("copy.constant", name=source_text(habit))
    is_of_weights = is_drawn and bool(queries.inputs(first))
    help = sentence("copy.draw.help") if is_of_weights else sentence("copy.constant.help", code=code)
    edit = habit.code.replaced(habit.found.node, new) if habit.code and habit.found and new and not is_drawn else None
    return Needless(habit, why, help, _made_above(habit, first), edits=(edit,) if edit is not None else ())


def _made_above(habit: Habit, factory: OpId) -> Culprit | None:
    """Return what is copied as a culprit, if another line made it."""
    queries, site = habit.queries, habit.queries.site(habit.line)
    born = queries.site(queries.op_site(factory))
    if born is None or site is None or (born.file, born.line) == (site.file, site.line):
        return None
    return as_culprit(queries, queries.carried(habit.ops[1])[0], [source_text(habit)], born)


def _made_there(habit: Habit) -> str:
    """Return `torch.ones(n, device=d)` for `torch.ones(n).to(d)`, with one factory."""
    found, code = habit.found, habit.code
    moved = match_code("$x.to($device)", found.node) if found is not None else None
    if found is None or code is None or moved is None:
        return ""
    calls = list(calls_in(moved["x"]))
    names = {call: full_name(call.func, found.source) for call in calls}
    made = [call for call in calls if names[call].startswith("torch.") and names[call][len("torch.") :] in MAKES]
    if len(made) != 1 or keyword(made[0], "device") is not None:
        return ""
    device, dtype = _asked_by_move(found, moved["device"])
    if dtype and keyword(made[0], "dtype") is not None:
        return ""
    asked = f"{device}, dtype={dtype}" if dtype else device
    return code.text_with(moved["x"], (made[0], code.with_argument(made[0], "device", asked)))


# Noise that a step draws on the CPU: not the data of a program, which may be drawn too.


def _joins_what_is_there(habit: Habit, pairs: list[tuple[OpId, OpId]]) -> bool:
    """Return whether what a line draws is added to what was there before the step, and goes into no module first.

    `x = x + 0.1 * noise` goes on with `x` of the step before; `loss = mse(net(x), y)` has nothing but drawn data.
    """
    joined = [_joins_older(habit.queries, op, since) for since, op in pairs]
    return 2 * sum(joined) > len(joined)


def _joins_older(queries: TraceQueries, op: OpId, since: OpId) -> bool:
    calls, reached = queries.trace.ops.ints("call"), queries.outputs(op)
    size = queries.size(reached[0])
    for row in reached:
        for taker in queries.takers(row)[:_MOST]:
            name = short_op_name(queries.op_name(taker)).removesuffix("_")
            if taker <= op or calls[taker] != calls[op] or name not in MIXES:
                continue
            others = [each for each in queries.inputs(taker) if each not in reached]
            is_joined = [queries.size(each) >= size + (name == "mul") for each in others]
            if any(is_joined) and _is_of_before(queries, others[is_joined.index(True)], size, since):
                return True
            if not any(is_joined) and len(reached) < _MOST:
                reached += [each for each in queries.outputs(taker) if each not in reached]
    return False


def _is_of_before(queries: TraceQueries, row: TensorId, size: int, since: OpId) -> bool:
    """Return whether a tensor comes from the steps before, and nothing as large that was sent in this one."""
    queue, is_old = [row], False
    for each in queue:
        maker = queries.producer(each)
        is_large = queries.size(each) >= size
        if maker <= since:
            is_old |= is_large and not queries.is_of_a_module(queries.base(each))
        elif queries.kind(maker) == "copy" and HOST in map(queries.device, queries.carried(maker)):
            if is_large:
                return False
        elif len(queue) < _ANCESTORS:
            queue += [part for part in queries.made_from(each) if part not in queue]
    return is_old


def _is_noise(habit: Habit, drawn: OpId) -> bool:
    """Return whether what a line draws is no data: the same function draws it, and another line brings data.

    These were there before all of the steps, and are others in each.
    """
    queries, first = habit.queries, habit.ops[0]
    sites = [queries.site(queries.op_user(each)) for each in (drawn, first)]
    functions = {(site.file, site.cell_id, site.function) for site in sites if site is not None}
    copies = np.flatnonzero(queries.is_kind("copy") & (queries.trace.ops.ints("device") != queries.host))
    between = copies[(copies > first) & (copies < habit.ops[-1])][: 10 * SAMPLE]
    others = map(OpId, between[queries.op_users[between] != habit.site].tolist())
    rows = [row for op in others for row in queries.carried(op)]
    made = [list(queries.ancestors(row, _MOST)) for row in dict.fromkeys(rows)]
    is_old = [min(map(queries.producer, of)) < first and {HOST}.issuperset(map(queries.device, of)) for of in made]
    return len(functions) == 1 and sum(is_old) * 2 >= min(len(habit.ops), SAMPLE)
