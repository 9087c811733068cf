"""dtype-mismatch: an op got tensors of dtypes that it does not combine, or one of a dtype that it does not take.

model.half()
model.head = nn.Linear(8, 2)            # bad: attached after the cast
model.head = nn.Linear(8, 2).half()     # good
"""

from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.dtype_mismatch import find_dtype_mismatch
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.rules.explained_mismatch import explained
from devtrace.words.topic import speaking_of


def dtype_mismatch(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    of_dtypes = queries.of_dtypes
    moment = snapshot.of(of_dtypes)
    mismatch = find_dtype_mismatch(of_dtypes, moment, op, text)
    if mismatch is None:
        return None
    with speaking_of("dtype"):
        return explained(Case.of(of_dtypes, moment, mismatch), "dtype-mismatch")
