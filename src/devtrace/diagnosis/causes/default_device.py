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


def was_made_by_default(case: MismatchCase) -> bool:
    """Return whether a tensor of no usual dtype was made without being asked, in a program that sets the default."""
    is_odd = case.queries.of == "dtype" and case.odd_trait in ("float64", "float16", "bfloat16")
    is_made = case.origin.arrival == ("made" if case.queries.evidence.saw_ops else "given")
    found = case.queries.source_node(case.born) if is_odd and is_made else None
    return found is not None and "set_default_" in found.source.text
