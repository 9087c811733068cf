"""The code asked for the odd device itself: `.cuda()`, `device=self.device`, `.to(first)`."""

from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.missed_moves import Ownership
from devtrace.diagnosis.evidence.moves import move_of
from devtrace.diagnosis.evidence.origins import device_given
from devtrace.diagnosis.evidence.source_text import only_assignment
from devtrace.diagnosis.evidence.trace_queries import META, NOWHERE
from devtrace.diagnosis.slugs import Certainty
from devtrace.source import kinds
from devtrace.source.element_types import is_cast
from devtrace.source.matching import called_name, match_code
from devtrace.source.parsing import own_name
from devtrace.source.safe_values import Scope, evaluate
from devtrace.words.catalogue import one_after_another, sentence


def module_was_sent_away(case: MismatchCase, owner: Ownership) -> Verdict | None:
    move = owner.sent_away
    if move is None:
        return None
    return Verdict("wrong-device", move.site, owner.name, owner.module, sent_by=move, others=len(owner.others))


def module_is_on_another_device(case: MismatchCase, owner: Ownership) -> Verdict:
    others = len(owner.others)
    certainty: Certainty = "inferred" if others else "seen"
    return Verdict("wrong-device", case.born, owner.name, owner.module, others=others, certainty=certainty)


def it_has_no_data(case: MismatchCase) -> Verdict | None:
    return Verdict("wrong-device", case.born, case.name) if case.mismatch.of == "copy" else None


def it_was_put_on_this_device(case: MismatchCase) -> Verdict | None:
    if case.origin.arrival not in ("copied", "made-there"):
        return None
    in_backward = case.queries.trace.ops.raw("phase", case.origin.op) == "backward"
    is_by_a_hook = is_cast(called_name(case.queries.op_node(case.origin.op).node)) and case.mismatch.of == "inputs"
    if in_backward and not is_by_a_hook and case.mismatch.of != "gradient":
        return None  # a gradient goes back where its tensor came from, at the line that moved that
    born = case.queries.op_site(case.origin.op) if case.mismatch.is_meant else case.born
    return Verdict("wrong-device", born=born, name=case.name, sent_by=move_of(case.queries, case.row))


def reason(case: MismatchCase, verdict: Verdict) -> str:
    if case.in_a_replica:
        return ""
    if case.odd_trait == META:
        return sentence("wrong-device.reason-meta")
    if case.mismatch.of == "gradient":
        return sentence("wrong-device.reason-gradient", odd=case.odd_trait)
    base = case.queries.base
    if not case.begins_so and base(case.origin.row) != base(case.row) and not case.mismatch.is_meant:
        return sentence("wrong-device.reason-stayed", odd=case.odd_trait, expected=case.expected_trait)
    return _reason_of_attribute(case) or sentence("wrong-device.reason", odd=case.odd_trait)


def _reason_of_attribute(case: MismatchCase) -> str:
    """Say which line set `self.device`, if a line asks for that and its module is elsewhere; empty for anything else.

    No move changes a plain attribute.
    """
    maker = case.queries.op_node(case.origin.op)
    device = device_given(maker, case.queries.by)
    match = match_code("$owner.$name", device)
    if device is None or match is None:
        return ""
    frame = case.moment.frame_of(maker.code.site)
    owners = case.objects_of_method(maker) if frame < 0 else []
    own = {own_name(maker.source, maker.node): owners[0]} if len(owners) == 1 else {}  # of several, nobody knows which
    scope = Scope.of(case.moment.frames[frame]) if frame >= 0 else Scope(own, {})
    owner = evaluate(match["owner"], scope)
    is_elsewhere = kinds.is_module(owner) and case.moment.trait_of(owner) == case.expected_trait
    if not is_elsewhere or kinds.device_named_by(evaluate(device, scope)) != case.odd_trait:
        return ""
    name, setter = maker.source.segment(device), only_assignment(case.queries, owner, match["name"])
    stayed = sentence("wrong-device.reason-attribute", name=name, odd=case.odd_trait, expected=case.expected_trait)
    line = setter.code.site_of(setter.statement) if setter is not NOWHERE else None
    return one_after_another((stayed, sentence("wrong-device.attribute-set", line=line, name=name) if line else ""))
