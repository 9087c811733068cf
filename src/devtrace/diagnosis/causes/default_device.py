"""A factory without a device followed a default device that the program set."""

from __future__ import annotations

from devtrace.diagnosis.causes.cause import Cause
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.fixes.creation_and_use import give_the_device


def factory_made_it_on_an_accelerator(case: Case) -> Verdict | None:
    """A factory without a device makes tensors on an accelerator only if a default device is set."""
    if case.origin.arrival != "made" or case.odd_device == HOST:
        return None
    return Verdict("default-device", born=case.born, name=case.name)


def _reason(case: Case, verdict: Verdict) -> str:
    return "A default device is set, and this was created without a device."


CAUSE = Cause(
    slug="default-device",
    meaning="a default device is set, and a factory followed it",
    what_helps="name the device, or take the default back",
    born_remark="by the default device",
    reason=_reason,
    advice="give the device explicitly, or leave the default device alone",
    fixes=(give_the_device,),
)
