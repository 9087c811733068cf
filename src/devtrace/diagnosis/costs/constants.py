"""Constants and noise that factories make on the CPU in each step, to be copied: the device can make them.

z = torch.randn(8, 64).to(device)           # torch.randn(8, 64, device=device)
"""

from __future__ import annotations

import ast
from typing import Final

import numpy as np

from devtrace.diagnosis.costs.copies import OFTEN, STEPS, source_text
from devtrace.diagnosis.costs.habits import Habit
from devtrace.diagnosis.costs.needless import Needless
from devtrace.diagnosis.costs.writes import are_written
from devtrace.diagnosis.evidence.origins import FROM_DATA
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Edit
from devtrace.source.matching import calls_in, keyword, match_code, names_in
from devtrace.source.vocabulary import DRAWS, MAKES, full_name
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, short_op_name

_SAMPLE: Final = 20
_MOST: Final = 12
"""Ops that a constant is made by."""
_BESIDE: Final = 200
"""Copies between that are looked at."""


def of_constants(habit: Habit) -> Needless | None:
    """Find what is copied in each step and comes from factories alone, by ops since the copy before."""
    if habit.count < OFTEN or len(habit.ops) < STEPS or not habit.is_of_each_step or habit.pace.steps < STEPS:
        return None
    pairs = list(zip(habit.ops[:-1], habit.ops[1:], strict=True))[:: len(habit.ops) // _SAMPLE + 1]
    made = [_factories(habit.queries, op, since) for since, op in pairs]
    if not all(made):
        return None
    first = made[0][0]
    is_drawn = any(_draws(habit.queries, each) for ops in made for each in ops)
    if is_drawn and not (_is_of_its_function(habit, first) and _has_a_batch_beside(habit)):
        return None  # a program's own data may be drawn too
    edit = None if is_drawn else _made_there(habit)
    factory = short_op_name(habit.queries.op_name(first))
    code = one_line(edit.after.strip()) if edit is not None else f"torch.{factory}(..., device=...)"
    why = sentence("copy.constant", name=source_text(habit))
    return Needless(habit, why, sentence("copy.constant.help", code=code), edits=(edit,) if edit is not None else ())


def _factories(queries: TraceQueries, op: int, since: int) -> list[int]:
    """Return the factories' ops that all of a copied tensor comes from, none of them before `since`; else nothing."""
    queue, found = queries.inputs(op)[:1], []
    for row in queue:
        maker = queries.producer(row)
        taken = queries.inputs(maker) if maker > since else []
        is_new = maker > since and queries.trace.ops.number("device", maker) == queries.host
        if not is_new or len(queue) > _MOST or are_written(queries, [queries.base(row)], maker, op):
            return []
        if not taken:
            if queries.kind(maker) != "create" or any(part in queries.op_name(maker) for part in FROM_DATA):
                return []
            found.append(maker)
        queue += [each for each in taken if each not in queue]
    return found


def _draws(queries: TraceQueries, op: int) -> bool:
    name = short_op_name(queries.op_name(op))
    return name in DRAWS or name.startswith("rand")


def _is_of_its_function(habit: Habit, op: int) -> bool:
    """Return whether an op is of the function that copies, and not of a data set's."""
    sites = [habit.queries.site(int(habit.queries.op_users[each])) for each in (op, habit.ops[0])]
    functions = {(site.file, site.cell_id, site.function) for site in sites if site is not None}
    return len(functions) == 1


def _has_a_batch_beside(habit: Habit) -> bool:
    """Return whether another line brings new data to the device in each step that were there before all of them."""
    queries, first = habit.queries, habit.ops[0]
    copies = np.flatnonzero(queries.is_kind("copy") & (queries.trace.ops.ints("device") != queries.host))
    between = copies[(copies > first) & (copies < habit.ops[-1])][:_BESIDE]
    rows = [queries.inputs(op)[0] for op in between.tolist() if queries.op_users[op] != habit.site]
    oldest = {queries.base(row): _oldest(queries, row) for row in rows if queries.device(row) == HOST}
    return sum(queries.producer(row) < first for row in oldest.values()) * 2 >= min(len(habit.ops), _SAMPLE)


def _oldest(queries: TraceQueries, row: int) -> int:
    """Return what was made first, of a tensor and what it was made of."""
    return min(queries.ancestors(row, _MOST), key=queries.producer)


def _made_there(habit: Habit) -> Edit | None:
    """Return the edit for `torch.ones(n).to(d)`, with one factory and nothing else that has a tensor."""
    found, code = habit.found, habit.code
    moved = match_code("$x.to($device)", found.node) if found is not None else None
    if found is None or code is None or moved is None:
        return None
    calls = list(calls_in(moved["x"]))
    names = {call: full_name(call.func, found.source) for call in calls}
    made = [call for call in calls if names[call].startswith("torch.") and names[call][len("torch.") :] in MAKES]
    if len(made) != 1 or keyword(made[0], "device") is not None:
        return None
    other = names_in(moved["x"]) - names_in(made[0])
    if any(not full_name(ast.Name(name), found.source) for name in other):
        return None
    with_device = code.with_argument(made[0], f"device={code.text(moved['device'])}")
    return code.replaced(found.node, code.text_with(moved["x"], made[0], with_device))
