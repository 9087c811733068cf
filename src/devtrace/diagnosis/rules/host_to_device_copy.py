"""host-to-device-copy: data that a line copies from the CPU to a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.pin_loader import not_block, pin_loader
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules import copies_of_a_line
from devtrace.diagnosis.rules.copies_of_a_line import AGAIN, CopiesOfALine, Habit, is_of_ddp
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.source.matching import called_name, calls_in, match_code
from devtrace.source.vocabulary import MAKES
from devtrace.words.catalogue import sentence


def copies_to_device(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return copies_of_a_line.findings(queries, tally, "h2d", _FINDERS, _finding)


RULE: Final = CostRule(
    slug="host-to-device-copy",
    find=copies_to_device,
)


def _finding(copies: CopiesOfALine, habit: Habit | None, lines: list[int]) -> Finding:
    habit = habit or _left_to_ddp(copies)
    found = copies_of_a_line.finding("host-to-device-copy", copies, habit, lines, _unpinned(copies))
    fix = _of_pinned_memory(copies) if habit is None and copies.count >= AGAIN else None
    return found if fix is None else replace(found, help=fix.help, edits=fix.edits)


def _numbers(copies: CopiesOfALine) -> Habit | None:
    """Find single numbers of the host's that are made into tensors and copied in each step."""
    queries = copies.queries
    taken = [queries.inputs(op) or queries.outputs(op) for op in copies.ops]
    if any(not rows or queries.dims[rows[0]] != 0 for rows in taken) and not _is_one_literal(copies, taken):
        return None
    severity = copies_of_a_line.weight_of_each_step(copies)
    if severity is None or not _is_made_or_moved_there(copies) or _is_as_the_package_likes(copies):
        return None
    message = sentence("copy.number", name=copies_of_a_line.source_text(copies))
    return Habit(message, sentence("copy.number.help"), severity=severity)


def _is_made_or_moved_there(copies: CopiesOfALine) -> bool:
    """Return whether the line itself makes the tensor, or moves it; torch does in `Normal(x, 0.1)`, and needs to."""
    found = copies.queries.source_node(copies.line)
    if found is None or not isinstance(found.node, ast.Call):
        return found is not None
    name = called_name(found.node)
    return name in (*MAKES, *_MAKES, *copies.queries.move_methods) or name.endswith("Tensor")


def _is_as_the_package_likes(copies: CopiesOfALine) -> bool:
    """Return whether a package's line makes a number where it is used, or moves one of a table that it keeps.

    One that is made on the CPU and then moved is a cost of the line.
    """
    found = copies.queries.source_node(copies.line) if copies.queries.package(copies.line) else None
    if found is None or not isinstance(found.node, ast.Call):
        return False
    moved = match_code("$x.$move(...)", found.node)
    made = calls_in(moved["x"]) if moved is not None and moved["move"] in copies.queries.move_methods else ()
    return not any(called_name(call) in (*MAKES, *_MAKES) for call in made)


def _is_one_literal(copies: CopiesOfALine, taken: list[list[int]]) -> bool:
    """Return whether the line makes a tensor of one element that the source has: `torch.tensor([0.5]).to(device)`."""
    tensors, found = copies.queries.trace.tensors, copies.queries.source_node(copies.line)
    moved = match_code("torch.$factory($value).$move(...)", found.node) if found is not None else None
    if moved is None or not all(rows and all(size == 1 for size in tensors[rows[0]].shape) for rows in taken):
        return False
    return all(isinstance(node, ast.List | ast.Tuple | ast.Constant | ast.Load) for node in ast.walk(moved["value"]))


_MAKES: Final = ("type_as", "new", "new_tensor", "full_like", "copy_", "fill_", "stack", "cat")

_FINDERS: Final = (copies_of_a_line.of_one_tensor, _numbers, copies_of_a_line.of_single_elements)


def _left_to_ddp(copies: CopiesOfALine) -> Habit | None:
    """Find inputs that only DistributedDataParallel moves, while the same function moves others of the step by hand."""
    queries, ops, site = copies.queries, copies.ops, copies.queries.site(copies.site)
    if copies.count < AGAIN or not ops or not all(is_of_ddp(queries, op) for op in ops[:20]):
        return None
    counts = copies.tally["h2d"]
    others = [other for other in copies.tally.sites("h2d") if other != copies.site]
    stepwise = [queries.site(other) for other in others if copies.count % int(counts[other]) == 0]
    by_hand = [other for other in stepwise if other and site and other.function == site.function]
    if not by_hand:
        return None
    line = by_hand[-1]
    return Habit(sentence("copy.left-to-ddp", site=line), sentence("copy.left-to-ddp.help", site=line))


def _unpinned(copies: CopiesOfALine) -> str:
    if _asks_in_vain(copies):
        return sentence("copy.unpinned")
    return ""


def _asks_in_vain(copies: CopiesOfALine) -> bool:
    table = copies.queries.trace.copies
    asked = table.ints("non_blocking")[copies.rows] > 0
    pageable = table.ints("pinned")[copies.rows] == 0
    return bool((asked & pageable).any())


def _of_pinned_memory(copies: CopiesOfALine) -> Fix | None:
    """Return what lets the CPU go on while a loader's batches are copied, where one half of it is there."""
    if _asks_in_vain(copies):
        return pin_loader(copies.queries, copies.line)
    pinned = copies.queries.trace.copies.ints("pinned")[copies.rows] > 0
    return not_block(copies.queries, copies.line) if len(pinned) and bool(pinned.all()) else None
