"""One mismatch under study, and what is concluded of it."""

from __future__ import annotations

from dataclasses import dataclass

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.mismatch import Mismatch
from devtrace.diagnosis.evidence.origins import Move, Origin
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.slugs import CauseSlug, Certainty


@dataclass(frozen=True)
class Verdict:
    """A cause with its evidence: `born` is a site, `name` leads to the tensor that the cause is about."""

    cause: CauseSlug
    born: int = -1
    name: AccessPath | None = None
    module: AccessPath | None = None  # the module that should have taken it along
    move: Move | None = None  # the move that should have taken it along
    sent_by: Move | None = None  # the move that brought it to the odd device
    certainty: Certainty = "seen"
    others: int = 0  # the module's tensors on the expected device
    dropped: bool = False  # nobody kept the copy that `move` returned

    @property
    def moved(self) -> int:
        """The site of the move that should have taken it along, or -1."""
        return self.move.site if self.move is not None else -1


@dataclass
class Case:
    """One mismatch under study."""

    queries: TraceQueries
    snapshot: FailureSnapshot
    mismatch: Mismatch
    origin: Origin
    subject: int  # the odd one; the nearest tensor with a name that it was computed from, if itself has none
    names: list[AccessPath]
    roots: list[tuple[int, AccessPath]]  # what the subject was computed from, on its device: row and a name that lasts

    @classmethod
    def of(cls, queries: TraceQueries, snapshot: FailureSnapshot, mismatch: Mismatch) -> Case:
        preferred_parents = (
            frozenset(snapshot.reachable_rows) if queries.live else frozenset(rows_held_by_modules(queries))
        )
        origin = origins.origin(queries, mismatch.odd_tensor, preferred_parents)
        followed = (
            origin.path if mismatch.odd_device == HOST else [mismatch.odd_tensor, queries.base(mismatch.odd_tensor)]
        )
        named = [row for row in followed if snapshot.names(row)]
        subject = named[0] if named else mismatch.odd_tensor
        roots = [(row, name) for row in named[1:] for name in snapshot.names(row) if outlives_the_call(name)]
        return cls(queries, snapshot, mismatch, origin, subject, snapshot.names(subject), roots)

    @property
    def op(self) -> int:
        return self.mismatch.op

    @property
    def odd_tensor(self) -> int:
        return self.mismatch.odd_tensor

    @property
    def odd_device(self) -> str:
        return self.mismatch.odd_device

    @property
    def expected_device(self) -> str:
        return self.mismatch.expected_device

    @property
    def in_a_replica(self) -> bool:
        """Whether the op failed in a thread of DataParallel's, over a tensor that its module holds."""
        if self.queries.trace.ops.number("thread", self.op) <= 0:
            return False
        return any(type(value).__name__ == "DataParallel" for name in self.names for value in name.objects)

    @property
    def born(self) -> int:
        return self.queries.born(self.queries.base(self.subject))

    @property
    def birth(self) -> int:
        """The op that made the subject's storage; -1 before the trace."""
        return self.queries.producer(self.queries.base(self.subject))


def rows_held_by_modules(queries: TraceQueries) -> list[int]:
    roles = {queries.strings.get(role, -2) for role in ("parameter", "buffer", "attribute")}
    return [row for row, role in enumerate(queries.trace.tensors.ints("role").tolist()) if role in roles]


def outlives_the_call(name: AccessPath) -> bool:
    """Whether a name outlives the call it is used in: not a local variable, nor what a list of data holds."""
    return not name.listed and any(hold.kind not in ("variable", "item") for hold in name.references)
