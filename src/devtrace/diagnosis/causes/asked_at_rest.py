"""A module's weights wait on one device and compute on another: a line asked, or used, them where they wait.

device = encoder.device                         # the CPU: the hook of `encoder` takes it to the GPU for each call
noise = torch.rand(2, 8, device=device)         # meets what `encoder` computes
"""

import ast

from devtrace.diagnosis.evidence.asked_devices import MOST_STEPS, AskedDevice, giver
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import AskedAtRest, MismatchCase, Verdict
from devtrace.diagnosis.evidence.origins import device_given
from devtrace.diagnosis.evidence.trace_queries import META, NOWHERE, SourceNode
from devtrace.source.kinds import device_named_by
from devtrace.source.matching import called_name, nodes_of
from devtrace.source.safe_values import Scope, values
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def weights_wait_elsewhere(case: MismatchCase) -> Verdict | None:
    """A line asked for their device, or used them: `encoder.embed(ids)` runs past the hook of `encoder`."""
    for name, module, hook in case.hooked():
        if not hook.stay and (case.odd_trait == META or hook.device == case.expected_trait):
            return Verdict("asked-at-rest", case.born, name, module)
    made = _made(case)
    given = device_given(made, case.queries.by)
    return _asked(case, made, given) if given is not None else None


def _made(case: MismatchCase) -> SourceNode:
    """Return the code that made the tensor; where nobody saw that, the line that gave it its name."""
    made, frame = case.queries.op_node(case.origin.op), case.frame_of(case.name)
    if made is not NOWHERE:
        return made
    bound = [each for each in frame.bindings(case.name.text) if each is not frame.source_node.statement]
    return SourceNode(frame.code, bound[-1], bound[-1]) if bound else NOWHERE


def _asked(case: MismatchCase, made: SourceNode, given: ast.expr) -> Verdict | None:
    """Return the verdict, if the device that a line was given is that of a module at rest, or of what leads to one."""
    walk, number = case.moment.whole_walk, case.moment.frame_of(made.code.site)
    frame = FailingFrame.reading(case.moment, number, case.expected_trait)
    first = giver(AskedDevice(case.odd_trait, frame, given), given, MOST_STEPS)
    scope = frame.scope() if frame.is_there else Scope({}, case.moment.namespace)
    waiting = [(walk.references[key][0].value, hook) for key, hook in case.moment.hooks.items() if not hook.stay]
    fits = [each for each in waiting if each[1].device == case.expected_trait or case.mismatch.of == "copy"]
    for code, node in filter(None, (first, (made.code, given))):
        if any(device_named_by(each.value) for each in nodes_of(ast.Constant, node)):
            return None  # it says a device itself
        asked = [each.value for each in values(node, code.source, scope)]
        around = {id(each) for value in asked for name in walk.names(value) for each in name.objects}
        for module, hook in fits:
            is_only = not frame.is_there and len(fits) == 1 and "device" in getattr(node, "attr", called_name(node))
            on_its_way = [each for name in walk.names(module) for each in name.objects]
            if is_only or id(module) in around or any(each is value for each in on_its_way for value in asked):
                at_rest = AskedAtRest(made, given, frame, code.site_of(node), one_line(code.text(node)), hook)
                return Verdict("asked-at-rest", case.born, case.name, walk.names(module)[0], asked=at_rest)
    return None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    asked, module = verdict.asked, verdict.module
    if asked is not None:
        said = {"line": asked.site, "code": asked.text, "device": asked.hook.device}
        return sentence("asked-at-rest.reason", module=verdict.module_text, **said)
    frames = FailingFrame.all_of(case.moment, case.expected_trait)
    outside = (each.code.site for each in frames if each.variables.get(each.own) is not module.last.value)
    site = next(outside, None) or case.queries.site(case.queries.op_user(case.op))
    return sentence("asked-at-rest.reason-used", module=verdict.module_text, odd=case.odd_trait, line=site)
