"""A module's weights wait on one device and compute on another: a line read their device, or used them, at rest.

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
    maker = _maker(case)
    device = device_given(maker, case.queries.by)
    return _asked_of_a_module(case, maker, device) if device is not None else None


def _maker(case: MismatchCase) -> SourceNode:
    """Return the code that made the tensor; where nobody saw that, the line that gave it its name."""
    maker, frame = case.queries.op_node(case.origin.op), case.frame_of(case.name)
    if maker is not NOWHERE:
        return maker
    setters = [stmt for stmt in frame.bindings(case.name.text) if stmt is not frame.source_node.statement]
    return SourceNode(frame.code, setters[-1], setters[-1]) if setters else NOWHERE


def _asked_of_a_module(case: MismatchCase, maker: SourceNode, device: ast.expr) -> Verdict | None:
    """Return the verdict for `torch.rand(2, device=encoder.device)`, if `encoder` or a part of it is at rest."""
    walk, number = case.moment.whole_walk, case.moment.frame_of(maker.code.site)
    frame = FailingFrame.reading(case.moment, number, case.expected_trait)
    source = giver(AskedDevice(case.odd_trait, frame, device), device, MOST_STEPS)
    scope = frame.scope() if frame.is_there else Scope({}, case.moment.namespace)
    waiting = [(walk.references[key][0].value, hook) for key, hook in case.moment.hooks.items() if not hook.stay]
    is_copy = case.mismatch.of == "copy"
    at_rest = [(module, hook) for module, hook in waiting if is_copy or hook.device == case.expected_trait]
    for code, node in filter(None, (source, (maker.code, device))):
        if any(device_named_by(constant.value) for constant in nodes_of(ast.Constant, node)):
            return None  # it says a device itself
        asked = [value.value for value in values(node, code.source, scope)]
        owners = {id(owner) for value in asked for name in walk.names(value) for owner in name.objects}
        for module, hook in at_rest:
            is_only = not frame.is_there and len(at_rest) == 1 and "device" in getattr(node, "attr", called_name(node))
            on_its_path = [owner for name in walk.names(module) for owner in name.objects]
            if is_only or id(module) in owners or any(owner is value for owner in on_its_path for value in asked):
                question = AskedAtRest(maker, device, frame, code.site_of(node), one_line(code.text(node)), hook)
                return Verdict("asked-at-rest", case.born, case.name, walk.names(module)[0], asked=question)
    return None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    asked, module = verdict.asked, verdict.module
    if asked is not None:
        words = {"line": asked.site, "code": asked.text, "device": asked.hook.device}
        return sentence("asked-at-rest.reason", module=verdict.module_text, **words)
    frames = FailingFrame.all_of(case.moment, case.expected_trait)
    outside = (frame.code.site for frame in frames if frame.variables.get(frame.own) is not module.last.value)
    site = next(outside, None) or case.queries.site(case.queries.op_user(case.op))
    return sentence("asked-at-rest.reason-used", module=verdict.module_text, odd=case.odd_trait, line=site)
