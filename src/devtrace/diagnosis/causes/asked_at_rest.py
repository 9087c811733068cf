"""A module's weights wait on one device and compute on another: a line asked, or used, them where they wait."""

from devtrace.diagnosis.evidence.asked_at_rest import asked_at_rest, hooked
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.trace_queries import META
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def device_was_asked_at_rest(case: MismatchCase) -> Verdict | None:
    asked = asked_at_rest(case)
    return Verdict("asked-at-rest", case.born, case.name, asked.names[0]) if asked is not None else None


def weights_were_used_at_rest(case: MismatchCase) -> Verdict | None:
    """`encoder.embed(ids)` runs past the hook of `encoder`."""
    for name, module, hook in hooked(case):
        if not hook.stay and (case.odd_trait == META or hook.device == case.expected_trait):
            return Verdict("asked-at-rest", case.born, name, module)
    return None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    asked, module = asked_at_rest(case), verdict.module_text
    if asked is None:
        made, owner = (
            case.queries.site(case.queries.born(case.odd_tensor)),
            verdict.module and verdict.module.last.value,
        )
        frames = FailingFrame.all_of(case.moment, case.expected_trait)
        past = (each.code.site for each in frames if each.variables.get(each.own) is not owner)
        line = made if verdict.name not in case.names else next(past, None)
        return sentence("asked-at-rest.reason-used", module=module, odd=case.odd_trait, line=line)
    line, text = asked.code.site_of(asked.node), one_line(asked.code.text(asked.node))
    return sentence("asked-at-rest.reason", line=line, code=text, module=module, device=asked.hook.device)
