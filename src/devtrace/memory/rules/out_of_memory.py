"""out-of-memory: an allocation failed; who holds what the device has.

losses.append(model(x).mean())              # bad: each keeps the graph of its batch
losses.append(model(x).mean().item())       # good
"""

from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.finding_parts import of_error
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, Holder, Line
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.shortage import Shortage
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import family, one_after_another, sentence
from devtrace.words.text_format import format_memory

MOST_HOLDERS: Final = 40
_MOST_LINES: Final = 6
_ERROR: Final = "out of memory"


def out_of_memory(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    shortage = next(iter(queries.snapshot.facts_of(Shortage)), None)
    if _ERROR not in text or shortage is None or op != queries.failed:
        return None
    from devtrace.memory.remedies import remedies

    memory = Memory(queries, shortage, op)
    holders = tuple(holder_of(memory, group) for group in memory.groups[:MOST_HOLDERS])
    help_, edits = next(filter(None, remedies(memory, moment)))
    return Finding(
        rule="out-of-memory",
        **of_error(queries, op, queries.op_user(op)),
        devices=(shortage.device,),
        bytes=memory.total,
        message=one_after_another(_sentences(memory)),
        help=help_,
        edits=edits,
        lines=tuple(lines_of(holders)),
        holders=holders,
    )


def holder_of(memory: Memory, group: Group) -> Holder:
    born = memory.queries.site(group.born())
    keeper = memory.keeper(group) if born is None or group.kind in ("graph", "named", "traceback") else None
    kept_at = keeper.site if keeper is not None else None
    return Holder(group.name, group.kind, group.bytes, born, kept_at, len(group.holdings))


def _sentences(memory: Memory) -> Iterator[str]:
    shortage = memory.shortage
    free, gap = shortage.limit - shortage.reserved, shortage.reserved - shortage.allocated
    sizes_in_bytes = {"asked": shortage.asked, "block": shortage.block, "held": memory.total, "limit": shortage.limit}
    sizes = {name: format_memory(size) for name, size in (*sizes_in_bytes.items(), ("free", free))}
    has_room = shortage.asked < shortage.block and shortage.asked + memory.total <= shortage.limit
    key = "out-of-memory.message" if shortage.limit else "out-of-memory.message-real"
    yield sentence(key, device=shortage.device, **sizes)
    if has_room:
        yield sentence("out-of-memory.block", **sizes)
    if memory.groups:
        largest = memory.groups[0]
        yield sentence("out-of-memory.most", size=format_memory(largest.bytes), what=what(largest.kind, largest.name))
    if gap > (0 if has_room else shortage.reserved // 10):
        yield sentence("out-of-memory.gap", size=format_memory(gap))


def lines_of(holders: tuple[Holder, ...], most: int = _MOST_LINES) -> Iterator[Line]:
    """Yield a line for each of the largest: its size, where it was made, whose it is and what keeps it."""
    for holder in holders[:most]:
        site = holder.born or holder.site
        if site is not None:
            kept_at = holder.site if holder.site is not None and holder.site.line != site.line else None
            words = what(holder.kind, holder.name)
            remark = sentence("out-of-memory.kept-at", what=words, line=kept_at.line) if kept_at is not None else words
            yield Line(format_memory(holder.bytes), site, remark)


_KINDS: Final = family(
    "out-of-memory.of-*", "out-of-memory.of-parameter", "out-of-memory.of-buffer", "out-of-memory.of-gradient",
    "out-of-memory.of-optimizer-state", "out-of-memory.of-activation", "out-of-memory.of-graph",
    "out-of-memory.of-named", "out-of-memory.of-traceback", "out-of-memory.of-history",
)  # fmt: skip


def what(kind: str, name: str) -> str:
    return sentence(_KINDS[kind], name=name) if name else sentence("out-of-memory.of-temporary")
