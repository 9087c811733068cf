"""host-to-device-copy: data that a line copies from the CPU to a device.

Each new batch is. Needless is what is the same each time, made of no data, a single number, or many times a few bytes.

    loss = loss + torch.tensor(0.01).to(device) * penalty       # bad: a number is copied in each step
    loss = loss + 0.01 * penalty                                # good: a number of Python's needs no copy
"""

from __future__ import annotations

import ast
from typing import Final

from devtrace.costs import copies
from devtrace.costs.copies import of_early_writes
from devtrace.costs.cost_findings import Needless
from devtrace.costs.edits_of_copies import move_above_loop, not_block, pin_loader
from devtrace.costs.factories import of_constants
from devtrace.costs.repeated_costs import SAMPLE, Habit
from devtrace.costs.same_tensor import of_one_tensor, of_unchanged
from devtrace.source.matching import called_name, calls_in, listed, match_code, names_in
from devtrace.source.vocabulary import FILLS, JOINS, is_factory, is_move
from devtrace.trace.ids import TensorId
from devtrace.words.catalogue import sentence


def _numbers(habit: Habit) -> Needless | None:
    """Find single numbers of the host's that are made into tensors and copied in each step."""
    queries = habit.queries
    taken = [queries.carried(op) or queries.outputs(op) for op in habit.ops]
    is_one_number = all(rows and queries.dims[rows[0]] == 0 for rows in taken)
    if not is_one_number and not _is_one_element(habit, taken):
        return None
    severity = copies.weight_of_each_step(habit)
    if severity is None or not _is_made_or_moved_there(habit) or _is_package_idiom(habit):
        return None
    why, above = sentence("copy.number", name=copies.source_text(habit, whole=False)), move_above_loop(habit)
    if above is None:
        return Needless(habit, why, sentence("copy.number.help"), severity=severity)
    help = sentence("copy.above-loop", name=copies.source_text(habit), code=above.after.strip())
    return Needless(habit, why, help, severity=severity, edits=(above,))


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


def _is_one_element(habit: Habit, taken: list[list[TensorId]]) -> bool:
    """Return whether the line makes a tensor of one element: `torch.tensor([0.5]).to(device)`.

    One that is not in the source may be all the data of a step; beside another of the step's copies it need not be.
    """
    tensors, found = habit.queries.trace.tensors, habit.found
    if found is None or not all(rows and all(size == 1 for size in tensors[rows[0]].shape) for rows in taken):
        return False
    values = list(filter(None, map(_one_value, calls_in(found.node))))
    others = [int(habit.tally["h2d"][site]) for site in habit.tally.sites("h2d") if site != habit.site]
    is_beside = max(others, default=0) * 2 >= habit.count or int(habit.tally["h2d"][habit.site]) > habit.count
    return bool(values) and (is_beside or not names_in(*values))


def _one_value(call: ast.Call) -> ast.expr | None:
    """Return `x` of `torch.tensor([[x]])`; None if it is no list of one value."""
    is_made = called_name(call).lower().endswith("tensor")
    value = call.args[0] if is_made and len(call.args) == 1 else None
    lists = 0
    while value is not None and isinstance(value, ast.List | ast.Tuple) and len(listed(value)) == 1:
        (value,), lists = listed(value), lists + 1
    return value if lists and not isinstance(value, ast.List | ast.Tuple | ast.Starred) else None


def _left_to_ddp(habit: Habit) -> Needless | None:
    """Find inputs that only DistributedDataParallel moves, while the same function moves others of the step by hand."""
    queries, ops, site = habit.queries, habit.ops, habit.queries.site(habit.site)
    if habit.count < copies.AGAIN or not ops or not all(copies.is_of_ddp(queries, op) for op in ops[:SAMPLE]):
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
        return sentence("copy.unpinned"), pin_loader(habit) if is_often else None
    return "", not_block(habit) if is_often and len(pinned) and bool(pinned.all()) else None


_FINDS: Final = (
    of_early_writes,
    of_one_tensor,
    _numbers,
    of_constants,
    of_unchanged,
    copies.of_single_elements,
    _left_to_ddp,
)

host_to_device_copies: Final = copies.find_copies("host-to-device-copy", "h2d", *_FINDS, plain=_of_pinned_memory)
