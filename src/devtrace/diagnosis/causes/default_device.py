"""A factory without a device followed a default device that the program set."""

from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.words.catalogue import sentence


def factory_made_it_on_an_accelerator(case: MismatchCase) -> Verdict | None:
    """A factory without a device makes tensors on an accelerator only if a default device is set."""
    if case.origin.arrival != "made" or case.begins_so:
        return None
    return Verdict("default-device", born=case.queries.born(case.origin.row), name=case.name)


def reason(case: MismatchCase, verdict: Verdict) -> str:
    return sentence("default-device.reason", odd=case.odd_trait)
