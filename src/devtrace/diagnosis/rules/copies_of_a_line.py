"""The copies of one direction from one line, and the habits that show them to be needless.

The three rules for copies share this file. Every site is counted; a habit makes the finding a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from devtrace.diagnosis.evidence import reads
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.evidence.steps import FEWEST, Pace, Steps
from devtrace.diagnosis.evidence.trace_queries import HOST, Rows, TraceQueries
from devtrace.diagnosis.evidence.writes import are_written
from devtrace.diagnosis.findings import Culprit, Edit, Finding
from devtrace.diagnosis.fixes.keep_moved_attribute import attribute_moved, keep_moved_attribute
from devtrace.diagnosis.ledger import Tally, directions
from devtrace.diagnosis.rules import package_line
from devtrace.diagnosis.rules.move_above_loop import move_above_loop
from devtrace.diagnosis.slugs import RuleSlug, Severity
from devtrace.source.matching import called_name, match_code
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, shorten

AGAIN: Final = 5
"""So many copies of one tensor from one line are a habit, not a set-up."""
MANY: Final = 50
OFTEN: Final = 10
"""So many copies of a few bytes, in at least so many steps, are a habit."""
STEPS: Final = 5
BETWEEN: Final = 6
"""So many ops from one copy to the next are next to nothing."""
_LONGEST: Final = 60
_TAKES: Final = ("cpu", "cuda", "numpy", "to", "tolist", "type", "xpu")
"""Methods that copy what they are called on."""
SMALL: Final = 4096
"""Bytes below which a copy costs its launch, not its size (about 10 µs on PCIe, the time that 100 KB take)."""


@dataclass(frozen=True)
class CopiesOfALine:
    """Copies of one direction (h2d, d2h, d2d) from one line of the user's, or from a package's line under it."""

    steps: Steps
    tally: Tally
    direction: str
    site: int
    rows: Rows
    line: int
    count: int

    @property
    def queries(self) -> TraceQueries:
        return self.steps.queries

    @cached_property
    def ops(self) -> list[int]:
        """Recorded ops, which may be fewer than were counted."""
        return [int(op) for op in self.queries.trace.copies.ints("op")[self.rows]]

    @cached_property
    def pace(self) -> Pace:
        """Return the pace of the copies, which must be two or more."""
        return self.steps.pace(np.array(self.ops), self.queries.source_node(self.line), self.count)

    @property
    def target(self) -> str:
        """Return the one device to which all copies go, else an empty text."""
        rows = set(self.queries.trace.copies.ints("to")[self.rows].tolist())
        return self.queries.device_names[rows.pop()] if len(rows) == 1 else ""

    @property
    def in_a_module(self) -> bool:
        return bool((self.queries.trace.ops.ints("call")[self.ops] >= 0).all())

    @property
    def bytes(self) -> int:
        return int(self.queries.trace.copies.ints("bytes")[self.rows].sum())

    @property
    def devices(self) -> tuple[str, ...]:
        copies, names = self.queries.trace.copies, self.queries.device_names
        found = {names[row] for column in ("from", "to") for row in copies.ints(column)[self.rows]}
        return tuple(sorted(found, key=lambda name: (name != HOST, name)))

    def parts(self) -> list[CopiesOfALine]:
        """Return the copies by the line that makes them, a package's or the user's; the most frequent first."""
        ops = np.array(self.ops, dtype=np.int64)
        lines = package_line.lines_of(self.queries, ops, self.direction, self.count)
        return [replace(self, line=line, rows=self.rows[at], count=count) for line, at, count in lines]

    def divided(self, finders: Iterable[Finder]) -> Iterator[tuple[CopiesOfALine, Habit | None]]:
        """Yield the copies of each package's line that has a habit, then the rest with the habit of the user's line."""
        parts = [] if self.is_of_torchs_optimizer() else self.parts()
        found = [(part, habit) for part in parts if (habit := _first(finders, part)) is not None]
        there = [(part, habit) for part, habit in found if part.line != self.site]
        yield from there
        rows = np.concatenate([part.rows for part, _ in there]) if there else self.rows[:0]
        count = self.count - sum(part.count for part, _ in there)
        if count:
            here = next((habit for part, habit in found if part.line == self.site), None)
            yield replace(self, rows=self.rows[~np.isin(self.rows, rows)], count=count), here

    def is_of_torchs_optimizer(self) -> bool:
        """Return whether torch's own optimizer makes the copies: all its ops are at the line of `step`."""
        queries, found = self.queries, self.queries.source_node(self.site)
        phases = queries.trace.ops.ints("phase")[self.ops]
        is_in_it = bool((phases == queries.strings.get("optimizer", -1)).all())
        is_own = bool((queries.trace.ops.ints("site")[self.ops] == queries.op_users[self.ops]).all())
        return is_in_it and is_own and found is not None and called_name(found.node) == "step"


@dataclass(frozen=True)
class Habit:
    """Why the copies of a line need not be. Those of a short loop are worth a note."""

    message: str
    help: str
    culprit: Culprit | None = None
    edits: tuple[Edit, ...] = ()
    severity: Severity = "warning"
    until: package_line.UntilThen | None = None


class _Advice(NamedTuple):
    help: str
    edits: tuple[Edit, ...] = ()
    until: package_line.UntilThen | None = None


Finder = Callable[[CopiesOfALine], Habit | None]


def _first(finders: Iterable[Finder], part: CopiesOfALine) -> Habit | None:
    return next((habit for find in finders if (habit := find(part)) is not None), None)


def findings(
    queries: TraceQueries,
    tally: Tally,
    direction: str,
    finders: tuple[Finder, ...],
    to_finding: Callable[[CopiesOfALine, Habit | None, list[int]], Finding],
) -> Iterator[Finding]:
    """Yield a finding for each line that copied in a direction, and for each of a package's that has a habit."""
    of_packages: list[tuple[CopiesOfALine, Habit | None]] = []
    for copies in _by_site(queries, tally, direction):
        for part, habit in copies.divided(finders):
            if part.line != part.site:
                of_packages.append((part, habit))
            else:
                yield to_finding(part, habit, [part.line])
    for same in package_line.by_site(queries, of_packages, lambda each: each[0].line):
        yield to_finding(_together([part for part, _ in same]), same[0][1], [part.line for part, _ in same])


def _by_site(queries: TraceQueries, tally: Tally, direction: str) -> Iterator[CopiesOfALine]:
    chosen = np.flatnonzero(directions(queries)[direction])
    sites = queries.cost_users[queries.trace.copies.ints("op")[chosen]]
    order = np.argsort(sites, kind="stable")
    bounds = np.searchsorted(sites[order], np.arange(len(queries.trace.sites) + 1))
    steps = Steps(queries)
    for site in tally.sites(direction):
        rows = chosen[order[bounds[site] : bounds[site + 1]]]
        yield CopiesOfALine(steps, tally, direction, site, rows, site, int(tally[direction][site]))


def _together(parts: list[CopiesOfALine]) -> CopiesOfALine:
    """Return the copies of one package's line to which several lines of the user's led."""
    rows = np.sort(np.concatenate([part.rows for part in parts]))
    return replace(parts[0], rows=rows, count=sum(part.count for part in parts))


def finding(rule: RuleSlug, copies: CopiesOfALine, habit: Habit | None, lines: list[int], remark: str = "") -> Finding:
    """Word the copies of a line: a warning if they are a habit. `lines` is that line, by each caller of its own."""
    ops, queries = copies.ops, copies.queries
    copied = copies.bytes * copies.count // max(len(ops), 1)
    why = sentence("copy.pace", pace=_pace_in_words(copies), remark=remark or sentence("copy.nothing"))
    if habit is not None:
        why = sentence("copy.why", habit=habit.message) + package_line.remark(queries, lines)
    return Finding(
        rule=rule,
        severity=habit.severity if habit else "note",
        cause="",
        devices=copies.devices,
        site=queries.site(copies.line),
        op=ops[0] if ops else -1,
        culprit=habit.culprit if habit else None,
        count=copies.count,
        bytes=copied,
        message=sentence(f"copy.{copies.direction}", count=copies.count, size=copied, why=why),
        help=package_line.advice(queries, copies.line, habit.help, habit.until) if habit else "",
        edits=habit.edits if habit else (),
        ops=tuple(ops),
    )


def _pace_in_words(copies: CopiesOfALine) -> str:
    if copies.count < FEWEST or not _is_of_each_step(copies):
        return ""
    return sentence("copy.pace-once" if copies.count == copies.pace.steps else "copy.pace-each")


def of_one_tensor(copies: CopiesOfALine) -> Habit | None:
    """Find the same tensor over and over: the very same, or in a module's forward parts of it."""
    queries, ops = copies.queries, copies.ops
    severity = _severity_of_one(copies)
    if severity is None:
        return None
    sources = [queries.inputs(op)[0] for op in ops if queries.inputs(op)]
    bases = {queries.base(row) for row in sources}
    least = AGAIN if severity == "warning" else FEWEST
    if not bases or len(sources) < least * len(bases) or are_written(queries, bases, min(ops) - 1, max(ops)):
        return None
    is_one_view = len(set(sources)) == 1 and copies.count >= OFTEN
    if not is_one_view and any(queries.base(row) != row for row in sources) and not _is_part_of_a_module(copies):
        return None
    row = min(bases)
    name = name_of(queries, row) or source_text(copies)
    tensor, born = queries.trace.tensors[row], queries.site(queries.born(row))
    culprit = Culprit(name, (name,), tensor.device, tuple(tensor.shape), tensor.dtype, born)
    key = "copy.same-in-steps" if severity == "note" else "copy.same"
    several = len(bases) > 1
    message = sentence(f"{key}-of-several", name=name, count=len(bases)) if several else sentence(key, name=name)
    advice = _move_once(copies, name, is_parameter=tensor.role == "parameter")
    return Habit(message, advice.help, culprit, advice.edits, severity, advice.until)


def _severity_of_one(copies: CopiesOfALine) -> Severity | None:
    """Return how much the copies of one tensor weigh; None of so few that no loop of the user's makes them."""
    if copies.count >= AGAIN and copies.ops:
        return None if _is_of_a_package_that_runs_once(copies) else "warning"
    return "note" if copies.count >= FEWEST and copies.line == copies.site and _is_of_each_step(copies) else None


def _is_of_a_package_that_runs_once(copies: CopiesOfALine) -> bool:
    """Return whether a package copies a few bytes in a loop of its own, which its caller began once.

    What is in several calls of modules runs again with them.
    """
    is_small = copies.bytes <= SMALL * len(copies.ops)
    is_of_one_call = len(np.unique(copies.queries.trace.ops.ints("call")[copies.ops])) == 1
    runs_again = copies.steps.runs_again(copies.site, np.array(copies.ops))
    return copies.line != copies.site and is_small and is_of_one_call and not runs_again


def _move_once(copies: CopiesOfALine, name: str, *, is_parameter: bool) -> _Advice:
    """Return what to do about a tensor that is copied again and again, in words and as edits."""
    queries = copies.queries
    if is_parameter:
        module = name.rpartition(".")[0]
        return _Advice(sentence("copy.move-module", module=module) if module else sentence("copy.move-its-module"))
    if _is_differentiated(copies):
        return _Advice(sentence("copy.keep", name=name))
    moved = move_above_loop(queries, copies.line, copies.target)
    if moved is not None:
        return _Advice(sentence("copy.above-loop", name=name, code=moved.after.strip()), (moved,))
    found = queries.source_node(copies.line)
    attribute = attribute_moved(found) if found is not None else ""
    if not attribute:
        return _Advice(sentence("copy.once", name=name))
    buffer = f'self.register_buffer("{attribute}", ..., persistent=False)' if _is_of_a_module(copies) else ""
    kept = keep_moved_attribute(queries, copies.line)
    if kept is None:
        register = sentence("copy.register", buffer=buffer) if buffer else ""
        once = register or sentence("copy.keep-attribute", attribute=attribute)
        return _Advice(once, (), _until_then(copies, name, attribute))
    code = kept.after.strip()
    if not buffer:
        return _Advice(sentence("copy.keep-moved", code=code), (kept,))
    return _Advice(sentence("copy.keep-moved-or-register", code=code, buffer=buffer), (kept,))


def _is_differentiated(copies: CopiesOfALine) -> bool:
    """Return whether gradients come back through the copies: what was moved once would be of one step's graph."""
    return bool(np.isin(copies.queries.trace.ops.ints("forward"), copies.ops).any())


def _is_of_a_module(copies: CopiesOfALine) -> bool:
    """Return whether the line is of a module's own class, by the module whose call it runs in."""
    site, call = copies.queries.site(copies.line), copies.queries.trace.ops[copies.ops[0]].call
    return site is not None and call is not None and site.function.rpartition(".")[0] == str(call.module.type)


def _until_then(copies: CopiesOfALine, name: str, attribute: str) -> package_line.UntilThen | None:
    """Return how the user of a package moves today what its modules keep as an attribute."""
    if not copies.queries.package(copies.line):
        return None
    move = f'm.{attribute} = m.{attribute}.to("{copies.target or "cuda"}")'
    root = "model" if name.startswith("self.") or "." not in name else name.partition(".")[0]
    which = f'for m in [m for m in {root}.modules() if hasattr(m, "{attribute}")]'
    return package_line.UntilThen(root, f"{which}: {move}")


def _is_part_of_a_module(copies: CopiesOfALine) -> bool:
    """Return whether it is a part of a module's own tensor: `self.cos[:n].to(x.device)`, not a data set's batch."""
    found = copies.queries.source_node(copies.line)
    if found is None or not copies.in_a_module:
        return False
    root = found.node
    while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    return isinstance(root, ast.Name) and root.id == "self"


def source_text(copies: CopiesOfALine) -> str:
    """Return what the line calls the tensor that it copies: `x` of `x[:n].to(device)`, else all of its code."""
    found = copies.queries.source_node(copies.line)
    moved = match_code("$x.$move(...)", found.node) if found is not None else None
    if found is None or moved is None or moved["move"] not in _TAKES:
        return shorten(reads.expression(copies.queries, copies.line), _LONGEST) or sentence("copy.it")
    owner = moved["x"]
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    return shorten(one_line(found.source.segment(owner)), _LONGEST) or sentence("copy.it")


def of_single_elements(copies: CopiesOfALine) -> Habit | None:
    """Find very many, very small copies, each of what was just picked or made, with next to nothing between them.

    The tensors of a model, of its checkpoint or of an optimizer are there before the first of them is copied.
    """
    if copies.count < MANY or copies.bytes > SMALL * len(copies.ops):
        return None
    if len(copies.ops) < 2 or not _are_close_together(copies.ops) or not _are_made_one_by_one(copies):
        return None
    return Habit(sentence("copy.few-bytes", name=source_text(copies)), sentence("copy.few-bytes.help"))


def _are_close_together(ops: list[int]) -> bool:
    """Return whether most of them are in long rows, and not two or three at a time in each of many steps."""
    gaps = np.diff(ops) > BETWEEN
    rows = np.diff(np.concatenate(([0], np.flatnonzero(gaps) + 1, [len(ops)])))
    return 2 * int(rows[rows >= OFTEN].sum()) > len(ops)


def _are_made_one_by_one(copies: CopiesOfALine) -> bool:
    """Return whether what is copied was made after the copy before it.

    `set_` makes none: torch.save reads a storage by it. What torch makes of a list it makes and copies in one op.
    """
    queries, ops = copies.queries, sorted(copies.ops)
    made = [max(map(queries.producer, queries.inputs(op)[-1:]), default=op) for op in ops[1:]]
    fresh = [op > last and "set_" not in queries.op_name(op) for last, op in zip(ops[:-1], made, strict=True)]
    return 2 * sum(fresh) > len(made)


def weight_of_each_step(copies: CopiesOfALine) -> Severity | None:
    """Return how much a few bytes weigh that a line copies in each step of a loop; None if it does not.

    Those of a short loop are a note, at a line of the user's.
    """
    if copies.bytes > SMALL * len(copies.ops) or not _is_of_each_step(copies):
        return None
    if copies.count >= OFTEN and copies.pace.steps >= STEPS:
        return "warning"
    return "note" if copies.line == copies.site else None


def _is_of_each_step(copies: CopiesOfALine) -> bool:
    found, ops = copies.queries.source_node(copies.line), np.array(copies.ops)
    if len(ops) < 2 or found is None:
        return False
    return copies.pace.is_of_each_step and (copies.line == copies.site or copies.steps.runs_again(copies.site, ops))


def is_of_ddp(queries: TraceQueries, op: int) -> bool:
    """Return whether DistributedDataParallel itself ran an op."""
    call = queries.trace.ops[op].call
    return call is not None and str(call.module.type) == "DistributedDataParallel"
