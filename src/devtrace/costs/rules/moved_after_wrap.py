"""moved-after-wrap: a module was moved to another device after it had been wrapped for a job of several ranks.

Who saves on the CPU and moves back does no harm, nor who is done: a move counts if a wrapper ran after it, elsewhere
than it was wrapped.

    net = DistributedDataParallel(net); net.to(device)      # bad: gradients are still gathered where it was
    net = DistributedDataParallel(net.to(device))           # good
"""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.moves import is_within
from devtrace.diagnosis.evidence.trace_queries import META, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding, Site
from devtrace.diagnosis.ledger import Tally
from devtrace.trace.ids import TensorId
from devtrace.trace.rows import Copy, Module, Move
from devtrace.trace.tables import Ints
from devtrace.words.catalogue import sentence

_WRAPPERS: Final = ("DistributedDataParallel", "FullyShardedDataParallel")
_SHARDS: Final = re.compile(r"\bfully_shard\(")
_SHARDED: Final = "FSDP"
"""`fully_shard` puts this before the name of a module's class."""


def moved_after_wrap(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    trace = queries.trace
    sites = [site.id for site in trace.sites if _SHARDS.search(site.text)]
    shardings = np.flatnonzero(np.isin(trace.ops.ints("site"), sites))
    sharded = int(shardings[0]) if len(shardings) else len(trace.ops)
    for wrapper in (each for each in trace.modules if _is_wrapper(each)):
        wrapped = sharded if wrapper.type not in _WRAPPERS else _first_child(queries, wrapper.id)
        moves = [move for move in trace.moves if wrapped <= move.op and _concerns(move, wrapper)]
        moves = [move for move in moves if not _is_sharded_after(queries, move, shardings)]
        origin = next((str(copy.from_) for move in moves for copy in _copies(queries, move)), "")
        ends = [*(move.op for move in moves[1:]), len(trace.ops)][: len(moves)]
        for move, after in zip(moves, ends, strict=True):
            device = str(trace.devices[move.device.id])
            if origin not in ("", device, META) and _ran(queries, wrapper, move.op, after):
                yield _finding(queries, move, wrapper, device)
                break


def _is_wrapper(module: Module) -> bool:
    """Return whether a module was wrapped; of modules within each other only for the outermost."""
    if module.type not in _WRAPPERS and not module.type.startswith(_SHARDED):
        return False
    return module.parent is None or not _is_wrapper(module.parent)


def _is_sharded_after(queries: TraceQueries, move: Move, shardings: Ints) -> bool:
    """Return whether what was moved is sharded only then: the ops of `fully_shard` before are of another model."""
    later = queries.trace.ops.lists("inputs").take(shardings[shardings >= move.op])
    return bool(np.isin(queries.bases[later.flat], queries.bases[_moved(queries, move)]).any())


def _first_child(queries: TraceQueries, wrapper: int) -> int:
    """Return the op before which the wrapper got its module."""
    modules = queries.trace.modules
    attached = modules.ints("op")[(modules.ints("parent") == wrapper) & (modules.ints("site") >= 0)]
    return int(attached.min()) if len(attached) else len(queries.trace.ops)


def _concerns(move: Move, wrapper: Module) -> bool:
    """Return whether a move took the wrapper, something around it or something within it to another device."""
    if move.device is None or not move.tensors:
        return False
    return is_within(move.module, wrapper) or is_within(wrapper, move.module)


def _copies(queries: TraceQueries, move: Move) -> list[Copy]:
    """Return the copies of a move; none if it only gave tensors memory."""
    if move.site is None:
        return []
    copies = queries.trace.copies
    ops = copies.ints("op")
    of_move = (ops >= move.op) & (queries.trace.ops.ints("site")[ops] == move.site.id)
    return [copies[row] for row in np.flatnonzero(of_move)[: move.tensors]]


def _moved(queries: TraceQueries, move: Move) -> list[TensorId]:
    return [row for copy in _copies(queries, move) for row in queries.outputs(copy.op.id)]


def _ran(queries: TraceQueries, wrapper: Module, begin: int, end: int) -> bool:
    calls = queries.trace.calls
    begins = calls.ints("begin")[calls.ints("module") == wrapper.id]
    return bool(np.any((begins >= begin) & (begins < end)))


def _finding(queries: TraceQueries, move: Move, wrapper: Module, device: str) -> Finding:
    name = wrapper.type if wrapper.type in _WRAPPERS else "fully_shard"
    site = queries.site(queries.user(move.site.id)) if move.site is not None else None
    return Finding(
        rule="moved-after-wrap",
        severity="warning",
        devices=(device,),
        site=site,
        op=move.op,
        culprit=_culprit(queries, move, device, site),
        count=move.tensors,
        message=sentence("moved-after-wrap.message", module=str(move.module.path), device=device, wrapper=name),
        help=sentence("moved-after-wrap.help"),
    )


def _culprit(queries: TraceQueries, move: Move, device: str, site: Site | None) -> Culprit | None:
    """Return the first tensor that was moved and has a name."""
    for row in _moved(queries, move):
        if name := str(queries.trace.tensors.raw("name", row)):
            return as_culprit(queries, row, [name], moved=site)
    return None
