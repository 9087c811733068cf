"""No predicate found its evidence."""

from devtrace.diagnosis.causes.cause import Cause
from devtrace.diagnosis.evidence.case import Case, Verdict


def no_evidence(case: Case) -> Verdict:
    return Verdict("unknown", born=case.born, name=case.name)


CAUSE = Cause(
    slug="unknown",
)
