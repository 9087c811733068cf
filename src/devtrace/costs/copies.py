"""Copies of one direction from one line: how they are judged and worded, and when a few bytes are too many copies.

And copies that `non_blocking=True` only begins: nobody may read or write their data before they are done.

scores = y.to("cpu", non_blocking=True)
print(scores.mean())                            # bad: nothing has waited for the copy, old values may be read
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from devtrace.costs import reads
from devtrace.costs.cost_findings import Needless, finding, findings
from devtrace.costs.repeated_costs import OFTEN, SAMPLE, STEPS, Habit
from devtrace.costs.steps import FEWEST
from devtrace.costs.writes import first_write
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.trace_queries import Rows, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.slugs import RuleSlug, Severity
from devtrace.source.matching import called_name, calls_in, match_code
from devtrace.source.vocabulary import is_copied_by
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import family, sentence

AGAIN: Final = 5
"""So many copies from one line are a habit, not a set-up."""
MANY: Final = 50
FEW: Final = 3
"""So many tensors of numbers, alike, in a row could be one."""
_TINY: Final = 256
BETWEEN: Final = 6
"""So many ops from one copy to the next are next to nothing."""
_COPIES: Final = family("copy.*", "copy.h2d", "copy.d2h", "copy.d2d")

Find = Callable[[Habit], Needless | None]


Plain = tuple[str, Fix | None]
"""Of copies that are not needless: the end of their message, and how they would cost less."""


def find_copies(
    rule: RuleSlug, direction: str, *finds: Find, plain: Callable[[Habit], Plain] = lambda _: ("", None)
) -> Callable[[TraceQueries, Tally], Iterator[Finding]]:
    """Return what finds the copies of a direction, each line's by the first of `finds` that sees it in them."""

    def judge(parts: list[Habit]) -> list[Needless]:
        some = [] if len(parts) == 1 and _is_of_torchs_optimizer(parts[0]) else parts
        return list(filter(None, (next(filter(None, (find(part) for find in finds)), None) for part in some)))

    def word(habit: Habit, needless: Sequence[Needless], of_package: str) -> Finding:
        remark, fix = ("", None) if needless else plain(habit)
        if needless:
            why = sentence("copy.why", habit=needless[0].why) + of_package
        else:
            is_paced = habit.count >= FEWEST and habit.is_of_each_step
            is_once = is_paced and habit.count == habit.pace.steps
            pace = sentence("copy.pace-once" if is_once else "copy.pace-each") if is_paced else ""
            why = sentence("copy.pace", pace=pace, remark=remark or sentence("copy.nothing"))
        message = sentence(_COPIES[direction], count=habit.count, size=habit.all_bytes, why=why)
        return finding(rule, habit, needless, message, fix)

    return lambda queries, tally: findings(queries, tally, direction, judge, word)


def _is_of_torchs_optimizer(habit: Habit) -> bool:
    """Return whether torch's own optimizer makes the copies: all its ops are at the line of `step`."""
    is_in_it = bool(habit.queries.is_phase("optimizer")[habit.ops].all())
    return is_in_it and habit.is_of_the_user and habit.found is not None and called_name(habit.found.node) == "step"


def is_of_ddp(queries: TraceQueries, op: OpId) -> bool:
    """Return whether DistributedDataParallel itself ran an op."""
    call = queries.trace.ops[op].call
    return call is not None and str(call.module.type) == "DistributedDataParallel"


def source_text(habit: Habit, *, whole: bool = True) -> str:
    """Return what the line calls the tensor that it copies: `x` of `x[:n].to(device)`, else all of its code.

    That is `x[:n]` if the part is meant. Empty without source.
    """
    found = habit.found
    moved = match_code("$x.$move(...)", found.node) if found is not None else None
    if found is None or moved is None or not is_copied_by(moved["move"]):
        return brief(reads.expression(habit.queries, habit.line))
    return brief(found.source.segment(whole_of(moved["x"]) if whole else moved["x"]))


def whole_of(part: ast.expr) -> ast.expr:
    """Return the code of the tensor of which code takes a part: `x` of `x[:n]`, but all of `tables["rows"]`."""
    while isinstance(part, ast.Subscript) and type(getattr(part.slice, "value", None)) is not str:
        part = part.value
    return part


def of_single_elements(habit: Habit) -> Needless | None:
    """Find very many, very small copies, each of what was just picked or made, with next to nothing between them.

    The tensors of a model, of its checkpoint or of an optimizer are there before the first of them is copied.
    """
    fewest, least = (FEW, FEW * OFTEN) if _are_lists_of_numbers(habit) else (OFTEN, MANY)
    if habit.count < least or not habit.is_small or len(habit.ops) < 2:
        return None
    if not _are_close_together(habit.ops, fewest) or not _are_made_one_by_one(habit):
        return None
    return Needless(habit, sentence("copy.few-bytes", name=source_text(habit)), sentence("copy.few-bytes.help"))


def _are_lists_of_numbers(habit: Habit) -> bool:
    """Return whether a line makes tensors of a few of Python's numbers, all alike: `torch.tensor(state).to(device)`."""
    queries, tensors = habit.queries, habit.queries.trace.tensors
    rows = [row for op in habit.ops for row in (queries.carried(op) or queries.outputs(op))[:1]]
    kinds = {(tensors.number("shape", row), str(tensors.raw("dtype", row))) for row in rows}
    made = queries.op_node(queries.producer(rows[0])) if len(kinds) == 1 else None
    makes = made is not None and any(called_name(call) == "tensor" for call in calls_in(made.node))
    return makes and habit.is_of_the_user and habit.bytes <= _TINY * len(habit.ops)


def _are_close_together(ops: list[OpId], fewest: int) -> bool:
    """Return whether most of them are in long rows, and not two or three at a time in each of many steps."""
    gaps = np.diff(ops) > BETWEEN
    rows = np.diff(np.concatenate(([0], np.flatnonzero(gaps) + 1, [len(ops)])))
    return 2 * int(rows[rows >= fewest].sum()) > len(ops)


def _are_made_one_by_one(habit: Habit) -> bool:
    """Return whether what is copied was made after the copy before it.

    `set_` makes none: torch.save reads a storage by it. What torch makes of a list it makes and copies in one op.
    """
    queries, ops = habit.queries, sorted(habit.ops)
    made = [max(map(queries.producer, queries.carried(op)), default=op) for op in ops[1:]]
    fresh = [op > last and "set_" not in queries.op_name(op) for last, op in zip(ops[:-1], made, strict=True)]
    return 2 * sum(fresh) > len(made)


def weight_of_each_step(habit: Habit) -> Severity | None:
    """Return how much a few bytes weigh that a line copies in each step of a loop; None if it does not.

    Those of a short loop are a note, at a line of the user's.
    """
    if not habit.is_small or not habit.is_of_each_step:
        return None
    if habit.count >= OFTEN and habit.pace.steps >= STEPS:
        return "warning"
    return "note" if habit.is_of_the_user else None


# Copies that have only begun.


def of_early_reads(habit: Habit) -> Needless | None:
    """Find a copy to the host that it works on before anything has waited."""
    queries, inputs = habit.queries, habit.queries.trace.ops.lists("inputs")
    works = (queries.trace.ops.ints("device") == queries.host) & ~queries.is_kind("view")
    waits = _waits(queries)
    for op in _begun(habit):
        takes = inputs.rows[np.isin(queries.bases[inputs.flat], queries.outputs(op))]
        first = next((OpId(each) for each in takes[works[takes]].tolist() if each > op), op)
        if first > op and np.searchsorted(waits, first) == np.searchsorted(waits, op, "right"):
            return _needless(habit, first, "copy.too-soon", "copy.too-soon.help")
    return None


def of_early_writes(habit: Habit) -> Needless | None:
    """Find pinned memory that is written again before anything has waited for the copy from it."""
    queries, waits = habit.queries, _waits(habit.queries)
    for op in _begun(habit, ("non_blocking", "pinned")):
        bases = [queries.base(row) for row in queries.carried(op)]
        later = waits[np.searchsorted(waits, op, "right") :]
        end = OpId(int(later[0]) if len(later) else len(queries.trace.ops) - 1)
        written = first_write(queries, bases, op, end)
        if written > op:
            return _needless(habit, written, "copy.overwritten", "copy.overwritten.help")
    return None


def _needless(habit: Habit, at: OpId, key: str, help_key: str) -> Needless:
    site = habit.queries.site(habit.queries.op_user(at))
    return Needless(habit, sentence(key, name=source_text(habit), site=site), sentence(help_key))


def _begun(habit: Habit, columns: tuple[str, ...] = ("non_blocking",)) -> list[OpId]:
    """Return the first copies of a line that did not block."""
    table = habit.queries.trace.copies
    chosen = habit.rows[np.all([table.ints(column)[habit.rows] > 0 for column in columns], axis=0)]
    return table.ints("op")[chosen][:SAMPLE].tolist()  # type: ignore[no-any-return]


def _waits(queries: TraceQueries) -> Rows:
    """Return the ops at which the host has waited for all copies before: syncs, and copies that block."""
    table = queries.trace.copies
    blocking = table.ints("op")[table.ints("non_blocking") <= 0]
    return np.sort(np.concatenate([np.flatnonzero(queries.is_kind("sync")), blocking]))
