"""Noise that a step draws on the CPU: not the data of a program, which may be drawn too.

x = x - 0.1 * net(x) + torch.randn(8, 64).to(device)     # `x` is there from the step before: this is noise
"""

import math
from typing import Final

import numpy as np

from devtrace.diagnosis.costs.habits import Habit
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.source.vocabulary import MIXES
from devtrace.words.text_format import short_op_name

_SAMPLE: Final = 20
_MOST: Final = 12  # ops that lead from what is drawn to what it is added to
_ANCESTORS: Final = 40


def joins_what_is_there(habit: Habit, pairs: list[tuple[int, int]]) -> bool:
    """Return whether what a line draws is added to what was there before the step, and goes into no module first.

    `x = x + 0.1 * noise` goes on with `x` of the step before; `loss = mse(net(x), y)` has nothing but drawn data.
    """
    joined = [_joins_older(habit.queries, op, since) for since, op in pairs]
    return 2 * sum(joined) > len(joined)


def _joins_older(queries: TraceQueries, op: int, since: int) -> bool:
    inputs, calls = queries.trace.ops.lists("inputs"), queries.trace.ops.ints("call")
    reached = queries.outputs(op)
    size = _size(queries, reached[0])
    for row in reached:
        for taker in inputs.rows[inputs.flat == row][:_MOST].tolist():
            name = short_op_name(queries.op_name(taker)).removesuffix("_")
            if taker <= op or calls[taker] != calls[op] or name not in MIXES:
                continue
            others = [each for each in queries.inputs(taker) if each not in reached]
            is_joined = [_size(queries, each) >= size + (name == "mul") for each in others]
            if any(is_joined) and _is_of_before(queries, others[is_joined.index(True)], size, since):
                return True
            if not any(is_joined) and len(reached) < _MOST:
                reached += [each for each in queries.outputs(taker) if each not in reached]
    return False


def _size(queries: TraceQueries, row: int) -> int:
    return math.prod(queries.trace.tensors[row].shape)


def _is_of_before(queries: TraceQueries, row: int, size: int, since: int) -> bool:
    """Return whether a tensor comes from the steps before, and nothing as large that was sent in this one."""
    queue, is_old = [row], False
    for each in queue:
        maker = queries.producer(each)
        is_large = _size(queries, each) >= size
        if maker <= since:
            is_old |= is_large and not queries.is_of_a_module(queries.base(each))
        elif queries.kind(maker) == "copy" and HOST in map(queries.device, queries.inputs(maker)):
            if is_large:
                return False
        elif len(queue) < _ANCESTORS:
            queue += [part for part in queries.made_from(each) if part not in queue]
    return is_old


def is_noise(habit: Habit, drawn: int) -> bool:
    """Return whether what a line draws is no data: the same function draws it, and another line brings data.

    These were there before all of the steps, and are others in each.
    """
    queries, first = habit.queries, habit.ops[0]
    sites = [queries.site(int(queries.op_users[each])) for each in (drawn, first)]
    functions = {(site.file, site.cell_id, site.function) for site in sites if site is not None}
    copies = np.flatnonzero(queries.is_kind("copy") & (queries.trace.ops.ints("device") != queries.host))
    between = copies[(copies > first) & (copies < habit.ops[-1])][: 10 * _SAMPLE]
    rows = [
        queries.inputs(op)[0] for op in between.tolist() if queries.op_users[op] != habit.site and queries.inputs(op)
    ]
    made = [list(queries.ancestors(row, _MOST)) for row in dict.fromkeys(rows)]
    is_old = [min(map(queries.producer, of)) < first and {HOST}.issuperset(map(queries.device, of)) for of in made]
    return len(functions) == 1 and sum(is_old) * 2 >= min(len(habit.ops), _SAMPLE)
