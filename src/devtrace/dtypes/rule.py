"""dtype-mismatch: an op got tensors of dtypes that it does not combine, or one of a dtype that it does not take.

model.half()
model.head = nn.Linear(8, 2)            # bad: attached after the cast
model.head = nn.Linear(8, 2).half()     # good
"""

from dataclasses import replace

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.finding_parts import of_error
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.evidence.source_text import assigned_names
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding, Site
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.rules.explained_mismatch import birth_by_name, explained
from devtrace.dtypes.cast_edits import numbers_that_fit
from devtrace.dtypes.mismatch import find_dtype_mismatch
from devtrace.dtypes.sentences import dtype_error
from devtrace.dtypes.trait import DTYPE
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence, speaking_of
from devtrace.words.text_format import one_line


def dtype_mismatch(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    of_dtypes = queries.compared_by(DTYPE)
    moment = moment.of(of_dtypes)
    mismatch = find_dtype_mismatch(of_dtypes, moment, op, text)
    if mismatch is None:
        return _number_in_a_new_tensor(of_dtypes, moment, op, text)
    with speaking_of(DTYPE.name):
        finding = explained(MismatchCase.of(of_dtypes, moment, mismatch), "dtype-mismatch", _birth_by_name)
    return replace(finding, devices=queries.devices_of(mismatch.odd_tensor, *queries.inputs(op)))


def _birth_by_name(case: MismatchCase) -> Site | None:
    return birth_by_name(case, case.names) if not case.queries.evidence.saw_ops else None


def _number_in_a_new_tensor(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    """Explain a number that the dtype of a new tensor cannot hold: `limit = torch.full((2,), 1e6, dtype=half)`."""
    error, call = dtype_error(text), queries.op_node(op)
    site = queries.site(queries.op_site(op))
    frame = FailingFrame.of(moment, 0, "")
    if error is None or error.refused != "number" or queries.inputs(op) or call is NOWHERE or not frame.is_there:
        return None
    names = tuple(assigned_names(call)) or (one_line(call.source.segment(call.node)),)
    fix = next(numbers_that_fit(frame, error.named[0]), Fix(""))
    with speaking_of("dtype"):
        rest = sentence("mismatch.number-somewhere")
        message = sentence("mismatch.tensor", name=names[0], odd=error.named[0], rest=rest)
    return Finding(
        rule="dtype-mismatch",
        cause="python-number",
        **of_error(queries, op),
        culprit=Culprit(names[0], names, dtype=error.named[0], born=site),
        message=message,
        help=fix.help,
        edits=fix.edits,
    )
