"""memory-growth: what a loop keeps grows from step to step, long before a device's memory ends.

total += criterion(model(x), y)             # bad: each step's graph hangs on the sum
total += criterion(model(x), y).detach()    # good
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.remedies import BY_KIND
from devtrace.memory.retaining_line import Keeper
from devtrace.memory.rules.out_of_memory import MOST_HOLDERS, holder_of, lines_of, what
from devtrace.memory.shortage import Height, Key, Shortage
from devtrace.trace.ids import NO_OP, OpId
from devtrace.words.catalogue import family, one_after_another, sentence
from devtrace.words.text_format import format_memory

_HEIGHTS: Final = 3
"""At so many heights, one after the other, there was more of it than before."""
_ROUNDS: Final = 4
_WORTH: Final = 0.05
_MOST_OF_IT: Final = 0.5
"""What has no graph may be wanted: it counts where it is most of the memory that a name leads to."""
_DIFFERENTIATED: Final = 0.1
_MESSAGES: Final = family("memory-growth.*", "memory-growth.graph", "memory-growth.traceback")


def growing_memory(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    for height in _heights(queries):
        memory = Memory(queries, height.memory, height.op)
        for group in memory.groups:
            keeps = _keeper(memory, group, height.counts)
            if keeps is not None:
                yield _finding(memory, group, keeps)


def _heights(queries: TraceQueries) -> Sequence[Height]:
    return queries.snapshot.facts_of(Height) if not queries.snapshot.facts_of(Shortage) else ()


def _keeper(memory: Memory, group: Group, counts: Sequence[Mapping[Key, int]]) -> Keeper | None:
    """Return the line that puts more into a name in each round, where nothing else ends it."""
    if not group.name or group.kind not in BY_KIND or not _grows(memory, group, counts):
        return None
    is_wanted = group.kind in ("named", "parameter")
    least = _MOST_OF_IT if is_wanted else _WORTH
    named = sum(each.bytes for each in memory.groups if each.name)
    if group.bytes < least * named or memory.rounds(group) < _ROUNDS:
        return None
    keeps = memory.keeper(group)
    if keeps is None or not keeps.adds or keeps.runs_backward:
        return None
    if not is_wanted:
        return keeps if not _is_differentiated(memory, group) else None
    may_end = keeps.is_bounded or keeps.is_a_cache or keeps.how == "carried"
    if may_end or (group.kind == "parameter" and not memory.is_deep_copied(group)):
        return None
    is_given = group.kind == "named" and (memory.is_of_modules(group) or memory.is_of_reduced(group))
    return keeps if is_given or memory.is_of_states(group, keeps) else None


def _grows(memory: Memory, group: Group, counts: Sequence[Mapping[Key, int]]) -> bool:
    key = group.holdings[0].name, group.scope
    now = sum((each.name, each.scope) == key for each in memory.shortage.holdings)
    last = [number for number, _ in groupby([*(each.get(key, 0) for each in counts), now])][-_HEIGHTS:]
    return len(last) == _HEIGHTS and all(one < other for one, other in pairwise(last))


def _is_differentiated(memory: Memory, group: Group) -> bool:
    """Return whether a backward pass takes part of a graph from now on: a rollout is kept until its update.

    A pass that is over counts for nothing: what it took and left (`retain_graph`) is kept beyond its use.
    """
    others = np.flatnonzero(~memory.queries.is_phase("backward")[: memory.failed + 1])
    return _is_taken(memory, group, since=OpId(int(others[-1])) if len(others) else NO_OP)


def _is_taken(memory: Memory, group: Group, since: OpId = NO_OP) -> bool:
    """Return whether backward ops after one took part of a graph, or nobody knows its tensors."""
    inputs = memory.queries.trace.ops.lists("inputs")
    backward = memory.queries.is_phase("backward")[inputs.rows] & (inputs.rows > since)
    used = np.unique(memory.queries.bases[inputs.flat[backward]])
    rows = {memory.queries.base(each.tensor): each.bytes for each in group.holdings if each.tensor >= 0}
    taken = sum(rows[row] for row in set(used.tolist()) & set(rows))
    return not rows or taken > _DIFFERENTIATED * sum(rows.values())


def _finding(memory: Memory, group: Group, keeps: Keeper) -> Finding:
    rounds = memory.rounds(group)
    help_, edits = BY_KIND[group.kind](memory, group) or (sentence("out-of-memory.help-cpu", name=group.name), ())
    holder = holder_of(memory, group)
    is_left = group.kind == "graph" and _is_taken(memory, group)
    if is_left:
        help_ = sentence("memory-growth.help-left", name=group.name)
    key = "memory-growth.graph-left" if is_left else _MESSAGES.get(group.kind, "memory-growth.named")
    sizes = {
        "size": format_memory(group.bytes),
        "total": format_memory(memory.total),
        "what": what(group.kind, group.name),
    }
    return Finding(
        rule="memory-growth",
        severity="warning",
        devices=(memory.shortage.device,),
        site=keeps.site,
        op=memory.failed,
        count=rounds,
        bytes=group.bytes,
        message=sentence(key, name=group.name, device=memory.shortage.device, count=rounds, **sizes),
        help=help_,
        edits=edits,
        lines=tuple(lines_of((holder,))),
        holders=(holder,),
    )


def highest_memory(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """Say who held each device's memory when it was highest, where that was asked for."""
    for height in (each for each in _heights(queries) if each.asked):
        memory = Memory(queries, height.memory, height.op)
        holders = tuple(holder_of(memory, group) for group in memory.groups[:MOST_HOLDERS])
        limit = memory.shortage.limit
        sizes = {"size": format_memory(memory.shortage.allocated), "limit": format_memory(limit)}
        first = sentence("memory-peak.of" if limit else "memory-peak.message", device=memory.shortage.device, **sizes)
        largest = [
            sentence("memory-peak.part", size=format_memory(each.bytes), what=what(each.kind, each.name))
            for each in holders[:3]
        ]
        yield Finding(
            rule="memory-peak",
            severity="note",
            devices=(memory.shortage.device,),
            site=queries.site(queries.op_user(height.op)) if height.op >= 0 else None,
            op=height.op,
            bytes=memory.total,
            message=one_after_another([first, sentence("memory-peak.parts", parts=largest)] if largest else [first]),
            lines=tuple(lines_of(holders, MOST_HOLDERS)),
            holders=holders,
        )
