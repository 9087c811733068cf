"""host-to-device-copy, device-to-host-copy, device-to-device-copy: what crossed devices, line by line.

Every site is counted. A warning says that the copy need not be: the same tensor again and again, element by element, or
a round trip.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import HOST, Rows, SourceNode, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.ledger import Tally, directions
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.words.text_format import format_bytes, pluralize

AGAIN: Final = 5
"""So many copies of one tensor from one line are a habit, not a set-up."""
MANY: Final = 50
SMALL: Final = 4096
"""Bytes below which a copy costs its launch, not its size (about 10 µs on PCIe, the time that 100 KB take)."""

_FAR: Final = 400
"""Ops after a copy within which what was made of it must come back, to be of the same step."""

_ARRAYS: Final = ("np", "numpy", "torch", "th")

WORDS: Final[dict[str, tuple[RuleSlug, str]]] = {
    "h2d": ("host-to-device-copy", "to the device"),
    "d2h": ("device-to-host-copy", "to the host"),
    "d2d": ("device-to-device-copy", "between devices"),
}


@dataclass(frozen=True)
class Crossing:
    """The copies of one direction from one line of the user's."""

    queries: TraceQueries
    direction: str
    site: int
    times: int
    rows: Rows

    @property
    def ops(self) -> list[int]:
        return [int(op) for op in self.queries.trace.copies.ints("op")[self.rows]]

    @property
    def bytes(self) -> int:
        return int(self.queries.trace.copies.ints("bytes")[self.rows].sum())

    @property
    def devices(self) -> tuple[str, ...]:
        copies, names = self.queries.trace.copies, self.queries.device_names
        pairs = {names[row] for column in ("from", "to") for row in copies.ints(column)[self.rows]}
        return tuple(sorted(pairs))


def copies_to_device(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return _findings(queries, tally, "h2d")


def copies_to_host(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return _findings(queries, tally, "d2h")


def copies_between_devices(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return _findings(queries, tally, "d2d")


def _findings(queries: TraceQueries, tally: Tally, direction: str) -> Iterator[Finding]:
    chosen = np.flatnonzero(directions(queries)[direction])
    at = queries.cost_users[queries.trace.copies.ints("op")[chosen]]
    order = np.argsort(at, kind="stable")
    bounds = np.searchsorted(at[order], np.arange(len(queries.trace.sites) + 1))
    for site in tally.sites(direction):
        rows = chosen[order[bounds[site] : bounds[site + 1]]]
        beside = [other for other in tally.sites("h2d") if other != site] if direction == "h2d" else []
        yield _finding(Crossing(queries, direction, site, int(tally[direction][site]), rows), tally, beside)


def _finding(crossing: Crossing, tally: Tally, beside: list[int]) -> Finding:
    rule, where = WORDS[crossing.direction]
    times, ops = crossing.times, crossing.ops
    moved = crossing.bytes * times // max(len(ops), 1)
    habit = (
        _repeated(crossing)
        or _round_trip(crossing)
        or _unused(crossing)
        or _piecemeal(crossing)
        or _moved_by_ddp(crossing, [site for site in beside if times % int(tally["h2d"][site]) == 0])
    )
    message = f"{pluralize(times, 'copy', 'copies')} {where}, {format_bytes(moved)} in all"
    return Finding(
        rule=rule,
        severity="warning" if habit else "note",
        cause="",
        devices=crossing.devices,
        site=crossing.queries.site(crossing.site),
        op=ops[0] if ops else -1,
        culprit=habit.culprit if habit else None,
        count=times,
        bytes=moved,
        message=message + (f": {habit.message}" if habit else _unpinned(crossing) + "."),
        help=habit.help if habit else "",
        ops=tuple(ops),
    )


@dataclass(frozen=True)
class Habit:
    """Why the copies of a line need not be."""

    message: str
    help: str
    culprit: Culprit | None = None


def _repeated(crossing: Crossing) -> Habit | None:
    """The same tensor over and over: the very same, or in a module's forward a part of it."""
    queries, ops = crossing.queries, crossing.ops
    if crossing.times < AGAIN or not ops:
        return None
    sources = [queries.inputs(op)[0] for op in ops if queries.inputs(op)]
    bases = {queries.base(row) for row in sources}
    again = len(sources) >= AGAIN * len(bases)
    if not again or not _unchanged(queries, bases, ops):
        return None
    if any(queries.base(row) != row for row in sources) and not _same_part(crossing):
        return None
    named = min(bases)
    name = str(queries.trace.tensors.raw("name", named)) or _spoken(crossing)
    tensor = queries.trace.tensors[named]
    culprit = Culprit(
        name, (name,), tensor.device, tuple(tensor.shape), tensor.dtype, queries.site(queries.born(named))
    )
    if tensor.role == "parameter":
        help = f"move {name.rpartition('.')[0] or 'its module'} to the device where it works"
    else:
        help = f"move {name} once: register it as a buffer, or keep the moved tensor"
    return Habit(f"{name} is the same tensor each time.", help, culprit)


def _unchanged(queries: TraceQueries, bases: set[int], ops: list[int]) -> bool:
    """Whether nothing wrote to the tensors between their copies."""
    outputs = queries.trace.ops.lists("outputs")
    first, last = min(ops), max(ops)
    written = outputs.flat[outputs.offsets[first] : outputs.offsets[last + 1]]
    producers = queries.trace.tensors.ints("producer")
    rewritten = [row for row in np.unique(written).tolist() if row in bases and producers[row] < first]
    return not rewritten


def _same_part(crossing: Crossing) -> bool:
    """Whether it is a part of a module's own tensor (`self.cos[: n].to(x.device)`), not a data set's next batch."""
    queries = crossing.queries
    place = queries.source_node(crossing.site)
    calls = queries.trace.ops.ints("call")[crossing.ops]
    if place is None or not bool((calls >= 0).all()):
        return False
    root = place.node
    while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    return isinstance(root, ast.Name) and root.id == "self"


def _spoken(crossing: Crossing) -> str:
    """What the line calls the tensor that it copies."""
    place = crossing.queries.source_node(crossing.site)
    node = place.node if place else None
    if place is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return "it"
    owner = node.func.value
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    return place.source.segment(owner) or "it"


def _round_trip(crossing: Crossing) -> Habit | None:
    """Data that leaves a device, is worked on by the host and comes back, step after step."""
    queries, ops = crossing.queries, crossing.ops
    if crossing.direction != "d2h" or crossing.times < AGAIN or len(ops) < AGAIN:
        return None
    if queries.trace.ops.raw("phase", ops[-1]) == "backward":  # the gradient of work that began on the host
        return None
    for said, returns in _RETURNS:
        back = [returns(queries, op) for op in ops[:20]]
        returned = [site for site in back if site is not None]
        if returned and len(returned) * 2 >= len(back):
            return Habit(
                f"{said} ({queries.site(returned[0])}).", "do this work on the device, or all of it on the host"
            )
    return None


def _comes_back(queries: TraceQueries, op: int) -> int | None:
    """The site where something made of a copied tensor is copied back to a device, within the next ops."""
    reached = set(queries.outputs(op))
    worked: set[int] = set()
    ops = queries.trace.ops
    for later in range(op + 1, min(op + _FAR, len(ops))):
        taken = queries.inputs(later)
        if reached.isdisjoint(taken):
            continue
        if ops.number("device", later) == queries.host:
            reached.update(queries.outputs(later))
            if queries.kind(later) == "compute" or not worked.isdisjoint(taken):
                worked.update(queries.outputs(later))
        elif queries.kind(later) == "copy" and ops.raw("phase", later) != "backward" and not worked.isdisjoint(taken):
            return int(queries.op_users[later])
    return None


def _gradient_returns(queries: TraceQueries, op: int) -> int | None:
    """The site where a copy's gradient is copied back: a loss or a layer that computes on the host, and is trained."""
    ops, tensors = queries.trace.ops, queries.trace.tensors
    away = queries.inputs(op)[:1]
    backward = ops.ints("phase")[op + 1 : op + _FAR] == queries.strings.get("backward", -1)
    for later in (op + 1 + np.flatnonzero(backward)).tolist():
        if queries.kind(later) == "copy" and away and ops.number("device", later) != queries.host:
            gradient = queries.outputs(later)[:1]
            if gradient and tensors.number("shape", gradient[0]) == tensors.number("shape", away[0]):
                return int(queries.cost_users[later])
    return None


def _returns_by_numpy(queries: TraceQueries, op: int) -> int | None:
    """The site where the statement of a copy to the host, which ends in numpy, copies what it has made to a device."""
    ops = queries.trace.ops
    place = queries.source_node(int(queries.op_users[op]))
    for later in range(op + 1, min(op + 8, len(ops)) if place is not None else 0):
        if queries.kind(later) == "copy" and ops.number("device", later) != queries.host:
            there = queries.source_node(int(queries.op_users[later]))
            since = queries.inputs(later) and queries.producer(queries.inputs(later)[0]) > op
            inside = there is not None and place is not None and _only_numpy(place, there.node)
            return int(queries.op_users[later]) if inside and since else None
    return None


def _only_numpy(place: SourceNode, outer: ast.AST) -> bool:
    """Whether an expression stands inside another with nothing between them but numpy's work and torch's."""
    for node in list(place.source.ancestors(place.node))[1:]:
        inside = isinstance(node, ast.Call) and any(inner is place.node for arg in node.args for inner in ast.walk(arg))
        if inside and not (isinstance(node.func, ast.Attribute) and _root(node.func) in _ARRAYS):  # type: ignore[attr-defined]
            return False
        if node is outer or not isinstance(node, ast.expr):
            return node is outer
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


_RETURNS: Final = (
    ("what is worked out of it on the host goes back to the device", _comes_back),
    ("what is worked out of it in numpy goes back to the device", _returns_by_numpy),
    ("it is trained: the gradient of the work on the host goes back to the device", _gradient_returns),
)


def _unused(crossing: Crossing) -> Habit | None:
    """What was sent to a device on its own and is fetched back as it was sent."""
    queries, ops = crossing.queries, crossing.ops
    if crossing.direction != "d2h" or crossing.times < AGAIN or len(ops) < AGAIN:
        return None
    sent = [_sent_in_vain(queries, op) for op in ops[:20]]
    if sent[0] is None or any(op is None for op in sent):
        return None
    site = int(queries.op_users[sent[0]])
    if not _moves_one(queries.source_node(site)) and not _of_ddp(queries, sent[0]):
        return None
    return Habit(f"it was sent to the device ({queries.site(site)}) and not used there.", "leave it on the host")


def _moves_one(place: SourceNode | None) -> bool:
    """`tags = tags.to(device)`: somebody chose this tensor; not a line that moves whatever there is in a batch."""
    statement = place.statement if place is not None else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    call = statement.value
    owner = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id == statement.targets[0].id


def _sent_in_vain(queries: TraceQueries, op: int) -> int | None:
    """The copy that sent to the device what an op fetches back, if no other op between took it."""
    row = next(iter(queries.inputs(op)), -1)
    sent = queries.producer(queries.base(row)) if row >= 0 else -1
    if not 0 <= op - sent < _FAR or queries.kind(sent) != "copy" or queries.device(queries.inputs(sent)[0]) != HOST:
        return None
    inputs = queries.trace.ops.lists("inputs")
    taken = queries.bases[inputs.flat[inputs.offsets[sent + 1] : inputs.offsets[op]]]
    return None if queries.base(row) in taken.tolist() else sent


def _moved_by_ddp(crossing: Crossing, stepwise: list[int]) -> Habit | None:
    """Inputs that only DistributedDataParallel moves, while others of the step are moved by hand."""
    queries, ops = crossing.queries, crossing.ops
    here = queries.site(crossing.site)
    by_hand = [site for site in map(queries.site, stepwise) if site and here and site.function == here.function]
    if crossing.times < AGAIN or not ops or not by_hand or not all(_of_ddp(queries, op) for op in ops[:20]):
        return None
    return Habit(
        f"DistributedDataParallel moves them; other inputs are moved by hand ({by_hand[-1]}). Without it this fails.",
        f"move the rest of the batch at {by_hand[-1]} too",
    )


def _of_ddp(queries: TraceQueries, op: int) -> bool:
    call = queries.trace.ops[op].call
    return call is not None and str(call.module.type) == "DistributedDataParallel"


def _piecemeal(crossing: Crossing) -> Habit | None:
    """Very many, very small: a copy for each element."""
    if crossing.times < MANY or crossing.bytes > SMALL * len(crossing.ops) or not _hurried(crossing):
        return None
    return Habit("each of a few bytes.", "gather the values first (torch.stack, torch.tensor of a list) and copy once")


def _hurried(crossing: Crossing) -> bool:
    """Whether the copies follow each other with next to nothing between them."""
    ops = np.array(crossing.ops)
    return bool(len(ops) > 1 and np.median(np.diff(ops)) <= 6)


def _unpinned(crossing: Crossing) -> str:
    copies = crossing.queries.trace.copies
    asked = copies.ints("non_blocking")[crossing.rows] > 0
    pageable = copies.ints("pinned")[crossing.rows] == 0
    if crossing.direction == "h2d" and bool((asked & pageable).any()):
        return "; non_blocking has no effect from memory that is not pinned (DataLoader(pin_memory=True))"
    return ""
