"""A module's weights wait on one device and compute on another: a line asked, or used, them where they wait."""

from devtrace.diagnosis.evidence.asked_at_rest import asked_at_rest, hooked
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.trace_queries import META
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def weights_wait_elsewhere(case: MismatchCase) -> Verdict | None:
    """A line asked for their device, or used them: `encoder.embed(ids)` runs past the hook of `encoder`."""
    asked = asked_at_rest(case)
    if asked is not None:
        return Verdict("asked-at-rest", case.born, case.name, asked.names[0])
    for name, module, hook in hooked(case):
        if not hook.stay and (case.odd_trait == META or hook.device == case.expected_trait):
            return Verdict("asked-at-rest", case.born, name, module)
    return None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    asked, module = asked_at_rest(case), verdict.module_text
    if asked is not None:
        line, text = asked.code.site_of(asked.node), one_line(asked.code.text(asked.node))
        return sentence("asked-at-rest.reason", line=line, code=text, module=module, device=asked.hook.device)
    owners = verdict.module.objects[-1:] if verdict.module is not None else ()
    frames = FailingFrame.all_of(case.moment, case.expected_trait)
    outside = (each.code.site for each in frames if not any(each.variables.get(each.own) is owner for owner in owners))
    site = next(outside, None) or case.queries.site(case.queries.op_user(case.op))
    return sentence("asked-at-rest.reason-used", module=module, odd=case.odd_trait, line=site)
