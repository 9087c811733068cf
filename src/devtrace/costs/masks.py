"""Masks that pick values in each step: how many, only the device knows. What to do is for what takes the values.

F.cross_entropy(out[seen], y[seen])                      # bad: `seen` is counted, and the CPU waits
F.cross_entropy(out, y.masked_fill(~seen, -100))         # good: the loss leaves out what has that label
"""

from __future__ import annotations

import ast
from typing import Final

from devtrace.costs.factories import are_drawn, factories_of, steps_of
from devtrace.costs.repeated_costs import Habit
from devtrace.costs.writes import are_written
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.source.matching import is_read, match_code, nodes_of, same_code
from devtrace.source.vocabulary import AVERAGES, IGNORES_LABELS
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, short_op_name

_FOLLOWED: Final = 12
"""So many ops that take what was picked are looked at."""


def of_masks(habit: Habit) -> tuple[str, str] | None:
    """Return why a line counts what a mask picks, and what to do instead; None if it does something else."""
    found, queries = habit.found, habit.queries
    picked = match_code("$name[$mask]", found.node) if found is not None else None
    if found is None or picked is None or "_local_scalar_dense" in queries.op_name(habit.ops[0]):
        return None
    names = {key: one_line(found.source.segment(part)) for key, part in picked.items()}
    if _is_the_same(habit):
        return sentence("host-sync.to-count"), sentence("host-sync.to-count-alike.help", mask=names["mask"])
    kept = _put_back(found, picked["mask"])
    if kept:
        return sentence("host-sync.to-count"), sentence("host-sync.to-count-all.help", mask=names["mask"], kept=kept)
    taken = _taken_by(queries, habit.ops[0])
    help = next((key for key, ops in _HELPS.items() if not ops.isdisjoint(taken)), "host-sync.to-count.help")
    return sentence("host-sync.to-count"), sentence(help, **names)


_HELPS: Final = {"host-sync.to-count-labels.help": IGNORES_LABELS, "host-sync.to-count-mean.help": AVERAGES}


def _is_the_same(habit: Habit) -> bool:
    """Return whether each step picks by the same mask: one that nothing writes to, or that factories make anew."""
    queries = habit.queries
    masks = [queries.inputs(op)[1] for op in habit.ops if len(queries.inputs(op)) == 2]
    bases = {queries.base(mask) for mask in masks}
    if len(masks) != len(habit.ops) or len(masks) < 2:
        return False
    if len(bases) == 1:
        return not are_written(queries, bases, habit.ops[0], habit.ops[-1])
    made = [factories_of(queries, queries.inputs(op)[1:2], op, since) for since, op in steps_of(habit)]
    return all(made) and not are_drawn(queries, made)


def _put_back(found: SourceNode, mask: ast.expr) -> str:
    """Return the tensor in which the function puts values by the same mask: `y` of `y[seen] = f(x[seen])`."""
    items = nodes_of(ast.Subscript, found.function or found.source.tree)
    stored = (each for each in items if not is_read(each) and same_code(each.slice, mask))
    return next((one_line(found.source.segment(each.value)) for each in stored), "")


def _taken_by(queries: TraceQueries, op: OpId) -> set[str]:
    """Return the names of the ops that follow from what an op picks: those of a loss among them."""
    rows, names = list(queries.outputs(op)), list[str]()
    for row in rows:
        for taker in queries.takers(row):
            if taker > op and len(names) < _FOLLOWED:
                names.append(short_op_name(queries.op_name(taker)))
                rows += [each for each in queries.outputs(taker) if each not in rows]
    return set(names)
