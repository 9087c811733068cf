"""Replays the recorded ops with a fix's casts: which op would then get dtypes that it does not combine?"""

from devtrace.diagnosis.fixes.replay import Replay, Step
from devtrace.dtypes import autocast_regions
from devtrace.dtypes.mismatch import compared
from devtrace.source.element_types import CAST_BY_AUTOCAST, NORMS, OF_WEIGHTS, TAKES_ONE
from devtrace.trace.ids import TensorId
from devtrace.trace.op_kinds import INDEXING


class ReplayOfDtypes(Replay):
    """Runs the ops up to the failing one with what a fix casts.

    Most ops take several dtypes and give the larger; products, convolutions and assignments by index take one alone.
    """

    def failing_inputs(self) -> list[TensorId]:
        mismatch = self.case.mismatch
        return [mismatch.odd_tensor, *mismatch.others_of_odd_trait]

    def move_what_torch_makes(self) -> None:
        """Cast also views that torch's own code takes of a base for the failing op."""
        for step in self.steps_before_the_failing_op():
            self.there.update(self.moved_outputs(step))

    def conflicting_inputs(self, step: Step) -> tuple[TensorId, ...]:
        name = f"{step.name}."  # a default overload has none after its name
        if not name.startswith((*TAKES_ONE, *INDEXING)) or "index." in name or self._autocast_casts(step):
            return ()
        rows = [row for row in compared(self.queries, step.op) if row in step.inputs]
        dtypes_before, dtypes_now = {self.queries.trait(row) for row in rows}, {self.trait_now(row) for row in rows}
        if len(dtypes_now) < 2 or len(dtypes_before) > 1:
            return ()
        return tuple(row for row in rows if self.trait_now(row) != self.case.expected_trait)

    def _autocast_casts(self, step: Step) -> bool:
        """Return whether autocast casts what an op takes; a backward pass has the dtypes of the forward one."""
        region = autocast_regions.region_of(self.queries, step.op)
        of_products = f"{step.name}.".startswith(CAST_BY_AUTOCAST)
        is_backward = self.queries.trace.ops.raw("phase", step.op) == "backward"
        return is_backward or (of_products and region is not None and region.enabled > 0)

    def moved_outputs(self, step: Step) -> list[TensorId]:
        """Return the odd outputs whose odd inputs were all cast."""
        if step.name == OF_WEIGHTS or self._autocast_casts(step):
            return []
        outputs = [row for row in step.outputs if self.queries.trait(row) == self.case.odd_trait]
        inputs = step.inputs[:1] if step.name.startswith(NORMS) else step.rows or step.inputs
        odd_inputs = [row for row in inputs if self.queries.trait(row) == self.case.odd_trait]
        return outputs if odd_inputs and all(row in self.there for row in odd_inputs) else []
