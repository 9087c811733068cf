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
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.trace.ids import TensorId
from devtrace.trace.rows import Copy, Module, Move
from devtrace.words.catalogue import sentence

_WRAPPERS: Final = ("DistributedDataParallel", "FullyShardedDataParallel")
_SHARDS: Final = re.compile(r"\bfully_shard\(")
_SHARDED: Final = "FSDP"
"""`fully_shard` puts this before the name of a module's class."""


def moved_after_wrap(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    trace, modules, calls = queries.trace, queries.trace.modules, queries.trace.calls
    sites = [site.id for site in trace.sites if _SHARDS.search(site.text)]
    shardings = np.flatnonzero(np.isin(trace.ops.ints("site"), sites))
    inputs = trace.ops.lists("inputs")
    for wrapper in filter(_is_wrapper, modules):
        wrapped = shardings
        if wrapper.type in _WRAPPERS:  # it is wrapped when it gets its module
            wrapped = modules.ints("op")[(modules.ints("parent") == wrapper.id) & (modules.ints("site") >= 0)]
        begins, moves = calls.ints("begin")[calls.ints("module") == wrapper.id], list[Move]()
        for move in trace.moves if len(wrapped) else ():
            later = inputs.take(shardings[shardings >= move.op])  # what is sharded after it was moved
            is_sharded = np.isin(queries.bases[later.flat], queries.bases[_moved(queries, move)]).any()
            if move.op >= wrapped.min() and _concerns(move, wrapper) and not is_sharded:
                moves.append(move)
        origin = next((str(copy.from_) for move in moves for copy in _copies(queries, move)), "")
        for move, after in zip(moves, [*(each.op for each in moves[1:]), len(trace.ops)], strict=False):
            device, runs_then = str(move.device), (begins >= move.op) & (begins < after)
            if origin not in ("", device, META) and runs_then.any():
                yield _finding(queries, move, wrapper, device)
                break


def _is_wrapper(module: Module) -> bool:
    """Return whether a module was wrapped; of modules within each other only for the outermost."""
    if module.type not in _WRAPPERS and not module.type.startswith(_SHARDED):
        return False
    return module.parent is None or not _is_wrapper(module.parent)


def _concerns(move: Move, wrapper: Module) -> bool:
    """Return whether a move took the wrapper, something around it or something within it to another device."""
    is_related = is_within(move.module, wrapper) or is_within(wrapper, move.module)
    return move.device is not None and bool(move.tensors) and is_related


def _copies(queries: TraceQueries, move: Move) -> list[Copy]:
    """Return the copies of a move; none if it only gave tensors memory."""
    copies, site = queries.trace.copies, move.site.id if move.site is not None else -2
    ops = copies.ints("op")
    of_move = (ops >= move.op) & (queries.trace.ops.ints("site")[ops] == site)
    return [copies[row] for row in np.flatnonzero(of_move)[: move.tensors]]


def _moved(queries: TraceQueries, move: Move) -> list[TensorId]:
    return [row for copy in _copies(queries, move) for row in queries.outputs(copy.op.id)]


def _finding(queries: TraceQueries, move: Move, wrapper: Module, device: str) -> Finding:
    name = wrapper.type if wrapper.type in _WRAPPERS else "fully_shard"
    site = queries.site(queries.user(move.site.id)) if move.site is not None else None
    names = {row: str(queries.trace.tensors.raw("name", row)) for row in _moved(queries, move)}
    row = next((row for row, name in names.items() if name), None)
    return Finding(
        rule="moved-after-wrap",
        severity="warning",
        devices=(device,),
        site=site,
        op=move.op,
        culprit=as_culprit(queries, row, [names[row]], moved=site) if row is not None else None,
        count=move.tensors,
        message=sentence("moved-after-wrap.message", module=str(move.module.path), device=device, wrapper=name),
        help=sentence("moved-after-wrap.help"),
    )
