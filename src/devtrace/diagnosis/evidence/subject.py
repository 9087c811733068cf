"""The tensor whose cause is being looked for."""

import ast
from dataclasses import dataclass

from devtrace.diagnosis.evidence.access_paths import NO_PATH, AccessPath
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch import Mismatch
from devtrace.diagnosis.evidence.moves import crossed
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.trace.ids import OpId, SiteId, TensorId


@dataclass
class Subject:
    """A tensor on the mismatch's odd device, or of its odd dtype, with the names that lead to it, best first."""

    queries: TraceQueries
    moment: FailingMoment
    mismatch: Mismatch
    row: TensorId
    names: list[AccessPath]

    @property
    def name(self) -> AccessPath:
        return self.names[0] if self.names else NO_PATH

    @property
    def op(self) -> OpId:
        """Op that failed."""
        return self.mismatch.op

    @property
    def odd_tensor(self) -> TensorId:
        return self.mismatch.odd_tensor

    @property
    def odd_trait(self) -> str:
        return self.mismatch.odd_trait

    @property
    def expected_trait(self) -> str:
        return self.mismatch.expected_trait

    @property
    def begins_so(self) -> bool:
        """True if tensors are odd until something moves them: on the CPU, or of any dtype."""
        return self.queries.by.is_plain(self.odd_trait)

    @property
    def base(self) -> TensorId:
        """Tensor whose storage it has: itself when it is no view."""
        return self.queries.base(self.row)

    @property
    def born(self) -> SiteId:
        """Site of its birth, or -1; for a dtype the site before copies to other devices, which keep the dtype."""
        row, source, device = self.base, self.queries.source, self.queries.device
        while row > source(row) >= 0 and device(row) != device(source(row)) and not crossed(self.queries, row):
            row = self.queries.base(source(row))
        return self.queries.born(row)

    @property
    def birth(self) -> OpId:
        """Op that made its storage, or before which it was registered after a gap; -1 before the trace."""
        return max(self.queries.producer(self.base), self.queries.registered_late(self.base))

    @property
    def was_made_in_a_call(self) -> bool:
        """True if a module made it while it was called, as it makes a cache."""
        return self.queries.module(self.birth) >= 0

    def was_made_after(self, op: OpId) -> bool:
        """Return whether it was made after an op; False if its time is only inferred."""
        return self.birth > op and self.queries.certainty(self.row) == "seen"

    def frame_of(self, name: AccessPath) -> FailingFrame:
        """Return the frame of the user's code with the variable that an access path starts from."""
        return FailingFrame.of(self.moment, name.frame, self.expected_trait)

    def binding_of(self, name: AccessPath, *, unmoved: bool = False) -> tuple[FailingFrame, ast.stmt] | None:
        """Return the frame of a name's variable, and its last assignment there; `unmoved`: no `x = x.to(device)`."""
        frame = self.frame_of(name)
        assignments = frame.bindings(name.references[0].text, unmoved)
        return (frame, assignments[-1]) if assignments else None

    def odd_row(self, value: object) -> TensorId | None:
        """Return the row of a value that is a tensor on the odd device; None for anything else."""
        row = self.moment.row(value)
        return row if row is not None and self.queries.trait(row) == self.odd_trait else None

    def is_expected(self, row: TensorId | None) -> bool:
        """Return whether a tensor is on the expected device."""
        return row is not None and self.queries.trait(row) == self.expected_trait
