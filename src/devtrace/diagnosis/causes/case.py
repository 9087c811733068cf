"""One mismatch under study, and what is concluded of it."""

from __future__ import annotations

from dataclasses import dataclass

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.origins import Move, Origin
from devtrace.diagnosis.evidence.suspects import Suspect
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Certainty


@dataclass(frozen=True)
class Verdict:
    """A cause with its evidence: `born` and `moved` are sites, `name` says the tensor that the cause is about."""

    cause: str
    born: int = -1
    moved: int = -1
    name: AccessPath | None = None
    module: AccessPath | None = None  # the module that should have taken it along
    move: Move | None = None
    certainty: Certainty = "seen"
    others: int = 0  # how many tensors of the module are at home
    dropped: int = -1  # the site of a `.to()` whose result nobody kept


@dataclass
class Case:
    """One mismatch under study."""

    facts: TraceQueries
    scene: FailureSnapshot
    suspect: Suspect
    origin: Origin
    subject: int  # the odd one; the nearest tensor with a name that it was computed from, if itself has none
    names: list[AccessPath]
    roots: list[tuple[int, AccessPath]]  # what the subject was computed from, on its device: row and a name that lasts

    @classmethod
    def of(cls, facts: TraceQueries, scene: FailureSnapshot, suspect: Suspect) -> Case:
        weighty = frozenset(scene.held_rows) if facts.live else frozenset(rows_of_modules(facts))
        origin = origins.origin(facts, suspect.tensor, weighty)
        followed = origin.path if suspect.device == HOST else [suspect.tensor, facts.base(suspect.tensor)]
        named = [row for row in followed if scene.names(row)]
        subject = named[0] if named else suspect.tensor
        roots = [(row, name) for row in named[1:] for name in scene.names(row) if lasting(name)]
        return cls(facts, scene, suspect, origin, subject, scene.names(subject), roots)

    @property
    def in_a_replica(self) -> bool:
        """Whether the op failed in a thread of DataParallel's, over a tensor that its module holds."""
        if self.facts.trace.ops.number("thread", self.suspect.op) <= 0:
            return False
        return any(type(value).__name__ == "DataParallel" for name in self.names for value in name.objects)

    @property
    def born(self) -> int:
        return self.facts.born(self.facts.base(self.subject))

    @property
    def birth(self) -> int:
        """The op that made the subject's storage; -1 before the trace."""
        return self.facts.producer(self.facts.base(self.subject))


def rows_of_modules(facts: TraceQueries) -> list[int]:
    roles = {facts.strings.get(role, -2) for role in ("parameter", "buffer", "attribute")}
    return [row for row, role in enumerate(facts.trace.tensors.ints("role").tolist()) if role in roles]


def lasting(name: AccessPath) -> bool:
    """Whether a name outlives the call it is used in: not a local variable, nor what a list of data holds."""
    return not name.listed and any(hold.kind not in ("variable", "item") for hold in name.holds)
