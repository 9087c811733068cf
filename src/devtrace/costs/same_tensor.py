"""A line that copies the same tensor again and again, or what is computed on the CPU from what no step changes.

for x in batches: y = x.to(device) * weights.to(device)     # `weights` is copied in each step

share = self.edges / self.edges.sum(1)
x = share.to(x.device) @ x                  # `self.edges` is a plain attribute of the module: it stayed on the CPU
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from devtrace.costs.copies import AGAIN, source_text
from devtrace.costs.cost_findings import Needless
from devtrace.costs.edits_of_copies import attribute_moved, keep_moved_attribute, move_above_loop
from devtrace.costs.factories import are_drawn, steps_of
from devtrace.costs.repeated_costs import OFTEN, Habit
from devtrace.costs.steps import FEWEST
from devtrace.costs.writes import are_written
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.slugs import Severity
from devtrace.source.flow import own_name
from devtrace.source.matching import chain, variable
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import sentence

_AGAIN: Final = "copy.same", "copy.same-of-several"
_IN_STEPS: Final = "copy.same-in-steps", "copy.same-in-steps-of-several"
_WORD: Final = re.compile(r"\w+")


def of_one_tensor(habit: Habit) -> Needless | None:
    """Find a line that copies the same tensor in every step, or in a module's forward parts of it."""
    queries, ops, severity = habit.queries, habit.ops, _severity(habit)
    if severity is None:
        return None
    sources = habit.carried
    bases = {queries.base(row) for row in sources}
    least = AGAIN if severity == "warning" else FEWEST
    if not bases or len(sources) < least * len(bases) or are_written(queries, bases, OpId(min(ops) - 1), max(ops)):
        return None
    is_one_view = len(set(sources)) == 1 and habit.count >= OFTEN
    if not is_one_view and any(queries.base(row) != row for row in sources) and not _is_part_of_a_module(habit):
        return None
    row = min(bases)
    text = source_text(habit)
    name = text if '["' in text or "['" in text else name_of(queries, row) or text
    culprit = as_culprit(queries, row, [name], queries.site(queries.born(row)))
    one, several = _IN_STEPS if severity == "note" else _AGAIN
    why = sentence(several, name=name, count=len(bases)) if len(bases) > 1 else sentence(one, name=name)
    found = Needless(habit, why, "", culprit, severity=severity)
    return _with_advice(found, name, is_parameter=queries.trace.tensors[row].role == "parameter")


def _severity(habit: Habit) -> Severity | None:
    """Return how much the copies of one tensor weigh; None of so few that no loop of the user's makes them."""
    if habit.count >= AGAIN and habit.ops:
        return None if _is_of_a_package_that_runs_once(habit) else "warning"
    return "note" if habit.count >= FEWEST and habit.is_of_the_user and habit.is_of_each_step else None


def _is_of_a_package_that_runs_once(habit: Habit) -> bool:
    """Return whether a package copies a few bytes in a loop of its own, which its caller began once.

    What is in several calls of modules runs again with them.
    """
    is_of_one_call = len(np.unique(habit.queries.trace.ops.ints("call")[habit.ops])) == 1
    return not habit.is_of_the_user and habit.is_small and is_of_one_call and not habit.runs_again


def _is_part_of_a_module(habit: Habit) -> bool:
    """Return whether it is a part of a module's own tensor: `self.cos[:n].to(x.device)`, not a data set's batch."""
    if habit.found is None or (habit.queries.trace.ops.ints("call")[habit.ops] < 0).any():
        return False
    *_, root = chain(habit.found.node)
    return variable(root) != "" and variable(root) == own_name(habit.found.source, root)


def _with_advice(found: Needless, name: str, *, is_parameter: bool) -> Needless:
    """Add what to do about a tensor that is copied again and again, in words and as edits."""
    habit = found.habit
    if is_parameter:
        module = name.rpartition(".")[0]
        help = sentence("copy.move-module", module=module) if module else sentence("copy.move-its-module")
        return replace(found, help=help)
    if bool(np.isin(habit.queries.trace.ops.ints("forward"), habit.ops).any()):
        return replace(found, help=sentence("copy.keep", name=name))  # what was moved once would be of one step's graph
    moved = move_above_loop(habit)
    if moved is not None:
        return replace(found, help=sentence("copy.above-loop", name=name, code=moved.after.strip()), edits=(moved,))
    attribute = attribute_moved(habit.found) if habit.found is not None else ""
    if not attribute:
        return replace(found, help=sentence("copy.once", name=name))
    own, _, key = attribute.partition(".")
    registered = f'{own}.register_buffer("{_WORD.findall(key)[-1]}", ..., persistent=False)'
    buffer = registered if _is_of_a_module(habit) else ""
    kept = keep_moved_attribute(habit)
    if kept is None:
        register = sentence("copy.register", buffer=buffer) if buffer else ""
        once = register or sentence("copy.keep-attribute", attribute=attribute)
        return replace(found, help=once)
    code = kept.after.strip()
    help = sentence("copy.keep-moved-or-register", code=code, buffer=buffer) if buffer else ""
    return replace(found, help=help or sentence("copy.keep-moved", code=code), edits=(kept,))


def _is_of_a_module(habit: Habit) -> bool:
    """Return whether the line is of a module's own class, by the module whose call it runs in."""
    site, call = habit.queries.site(habit.line), habit.queries.trace.ops[habit.ops[0]].call
    return site is not None and call is not None and site.function.rpartition(".")[0] == str(call.module.type)


# What no step changes.

_MOST: Final = 12  # tensors on the way from what was there before


def of_unchanged(habit: Habit) -> Needless | None:
    """Find copies of what the same tensors gave in each step, where nothing has written to these."""
    if not habit.is_of_many_steps:
        return None
    queries, steps = habit.queries, steps_of(habit)
    roots = {frozenset(_roots(queries, op, since)) for since, op in steps}
    (first, *others) = roots
    if others or not first or are_written(queries, first, habit.ops[0], habit.ops[-1]):
        return None
    largest = max(first, key=queries.size)
    name = name_of(queries, largest)
    culprit = as_culprit(queries, largest, [name], queries.site(queries.born(largest))) if name else None
    why = sentence("copy.unchanged", name=source_text(habit))
    return Needless(habit, why, sentence("copy.unchanged.help"), culprit)


def _roots(queries: TraceQueries, op: OpId, since: OpId) -> set[TensorId]:
    """Return what was there before, of all that an op takes; nothing if some of it is new data, a part, or drawn."""
    rows, roots, makers = queries.carried(op), set[TensorId](), list[OpId]()
    for row in rows:
        maker, base = queries.producer(row), queries.base(row)
        if queries.size(row) < queries.size(base):
            return set()  # a part may be another one in the next step
        if maker <= since:
            roots.add(base)
            continue
        given = queries.made_from(row)
        if not given or queries.trace.ops.number("device", maker) != queries.host or len(rows) > _MOST:
            return set()
        makers.append(maker)
        rows += [each for each in given if each not in rows]
    made = {queries.base(row) for row in rows} - roots
    is_drawn = are_drawn(queries, [makers]) or any("dropout" in queries.op_name(maker) for maker in makers)
    is_computed = any(queries.kind(maker) == "compute" for maker in makers)
    return roots if is_computed and not is_drawn and not are_written(queries, made, since, op) else set()
