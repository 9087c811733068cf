"""host-to-device-copy: data that a line copies from the CPU to a device.

Each new batch is. Needless is what is the same each time, made of no data, a single number, or many times a few bytes.

    loss = loss + torch.tensor(0.01).to(device) * penalty       # bad: a number is copied in each step
    loss = loss + 0.01 * penalty                                # good: a number of Python's needs no copy
"""

from __future__ import annotations

import ast
from typing import Final

from devtrace.diagnosis.costs import copies
from devtrace.diagnosis.costs.constants import of_constants
from devtrace.diagnosis.costs.edits_of_copies import not_block, pin_loader
from devtrace.diagnosis.costs.habits import Habit
from devtrace.diagnosis.costs.needless import Needless
from devtrace.diagnosis.costs.same_tensor import of_one_tensor
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.source.matching import called_name, calls_in, match_code
from devtrace.source.vocabulary import FILLS, JOINS, is_factory, is_move
from devtrace.words.catalogue import sentence


def _numbers(habit: Habit) -> Needless | None:
    """Find single numbers of the host's that are made into tensors and copied in each step."""
    queries = habit.queries
    taken = [queries.inputs(op) or queries.outputs(op) for op in habit.ops]
    if any(not rows or queries.dims[rows[0]] != 0 for rows in taken) and not _is_one_literal(habit, taken):
        return None
    severity = copies.weight_of_each_step(habit)
    if severity is None or not _is_made_or_moved_there(habit) or _is_package_idiom(habit):
        return None
    why = sentence("copy.number", name=copies.source_text(habit))
    return Needless(habit, why, sentence("copy.number.help"), severity=severity)


def _is_made_or_moved_there(habit: Habit) -> bool:
    """Return whether the line itself makes the tensor, or moves it; torch does in `Normal(x, 0.1)`, and needs to."""
    node = habit.found.node if habit.found is not None else None
    name = called_name(node) if node is not None else ""
    return node is not None and (not isinstance(node, ast.Call) or _makes(name) or is_move(name))


def _makes(name: str) -> bool:
    """Return whether a function gives a tensor of its own, or fills one."""
    made = is_factory(name) or name in JOINS or name.endswith("Tensor")
    return made or name in FILLS or name in ("copy_", "type_as")


def _is_package_idiom(habit: Habit) -> bool:
    """Return whether a package's line makes a number where it is used, or moves one of a table that it keeps.

    One that is made on the CPU and then moved is a cost of the line.
    """
    found = habit.found if habit.queries.package(habit.line) else None
    if found is None or not isinstance(found.node, ast.Call):
        return False
    moved = match_code("$x.$move(...)", found.node)
    made = calls_in(moved["x"]) if moved is not None and moved["move"] in habit.queries.move_methods else ()
    return not any(_makes(called_name(call)) for call in made)


def _is_one_literal(habit: Habit, taken: list[list[int]]) -> bool:
    """Return whether the line makes a tensor of one element that the source has: `torch.tensor([0.5]).to(device)`."""
    tensors, found = habit.queries.trace.tensors, habit.found
    moved = match_code("torch.$factory($value).$move(...)", found.node) if found is not None else None
    if moved is None or not all(rows and all(size == 1 for size in tensors[rows[0]].shape) for rows in taken):
        return False
    return all(isinstance(node, ast.List | ast.Tuple | ast.Constant | ast.Load) for node in ast.walk(moved["value"]))


def _left_to_ddp(habit: Habit) -> Needless | None:
    """Find inputs that only DistributedDataParallel moves, while the same function moves others of the step by hand."""
    queries, ops, site = habit.queries, habit.ops, habit.queries.site(habit.site)
    if habit.count < copies.AGAIN or not ops or not all(copies.is_of_ddp(queries, op) for op in ops[:20]):
        return None
    others = [other for other in habit.tally.sites("h2d") if other != habit.site]
    stepwise = [queries.site(other) for other in others if habit.count % int(habit.tally["h2d"][other]) == 0]
    line = next((other for other in reversed(stepwise) if other and site and other.function == site.function), None)
    if line is None:
        return None
    return Needless(habit, sentence("copy.left-to-ddp", site=line), sentence("copy.left-to-ddp.help", site=line))


def _of_pinned_memory(habit: Habit) -> copies.Plain:
    """Return what lets the CPU go on while a loader's batches are copied, where one half of it is there."""
    table = habit.queries.trace.copies
    asked, pinned = (table.ints(name)[habit.rows] > 0 for name in ("non_blocking", "pinned"))
    asks_in_vain, is_often = bool((asked & ~pinned).any()), habit.count >= copies.AGAIN
    if asks_in_vain:
        return copies.Plain(sentence("copy.unpinned"), pin_loader(habit) if is_often else None)
    return copies.Plain(fix=not_block(habit) if is_often and len(pinned) and bool(pinned.all()) else None)


_FINDS: Final = (of_one_tensor, _numbers, of_constants, copies.of_single_elements, _left_to_ddp)

RULE: Final = CostRule(
    "host-to-device-copy", copies.find_copies("host-to-device-copy", "h2d", *_FINDS, plain=_of_pinned_memory)
)
