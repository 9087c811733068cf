"""A factory made a tensor during the computation, without a device."""

import numpy as np

from devtrace.diagnosis.evidence.mismatch import RECENT
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict, move_of_its_parameter, outlives_the_call
from devtrace.diagnosis.evidence.missed_moves import PassingMove
from devtrace.diagnosis.evidence.origins import factory_call
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source import kinds
from devtrace.source.safe_values import classes_of
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence


def module_made_a_cache(case: MismatchCase, passing: PassingMove) -> Verdict | None:
    """A module keeps it as a plain attribute, and made it in a call or method after its own move."""
    if case.origin.arrival != "made" or case.former_state >= 0:
        return None
    site = case.queries.site(case.queries.op_site(case.birth))
    in_a_method = site is not None and _is_of_a_module(case.queries, site.function)
    if not case.was_made_in_a_call and not (in_a_method and case.was_made_after(passing.moves[-1].op)):
        return None
    return Verdict("created-without-device", born=case.born, name=passing.name, module=passing.module)


def optimizer_made_it_in_its_step(case: MismatchCase) -> Verdict | None:
    """An optimizer's step made state for a parameter that was on the expected device by then."""
    names = [name for name in case.names if name.is_state_of_an_optimizer]
    site = case.queries.site(case.queries.born(case.origin.row))
    if not names or case.origin.arrival != "made" or site is None:
        return None
    classes = {type(value).__name__ for name in names for value in name.objects if kinds.is_optimizer(value)}
    kind, _, method = site.function.rpartition(".")
    if kind not in classes or method == "__init__" or any(move_of_its_parameter(case, name) for name in names):
        return None
    return Verdict("created-without-device", born=case.queries.born(case.origin.row), name=names[0])


def factory_ran_during_the_computation(case: MismatchCase) -> Verdict | None:
    if case.origin.arrival != "made" or not _ran_during_the_computation(case, case.origin.op):
        return None
    return Verdict("created-without-device", born=case.queries.born(case.origin.row), name=case.name)


def _ran_during_the_computation(case: MismatchCase, op: OpId) -> bool:
    """Return whether an op ran in a module's call, or where its function or the object of its method knew the device.

    A function knows it by an argument on that device.
    """
    queries, moment, device = case.queries, case.moment, case.expected_trait
    ops = queries.trace.ops
    if queries.module(op) >= 0 or ops.raw("phase", op) in ("backward", "optimizer"):
        return True
    site = queries.site(queries.op_site(op))
    if site is None:
        return False
    if _is_of_a_module(queries, site.function) or (not case.names and queries.are_of_one_statement(op, case.op)):
        return True
    if any(_knew_the_device(case, name.last.owner, site, op) for name in case.names if outlives_the_call(name)):
        return True
    number, name = moment.frame_of(site), site.function.rpartition(".")[2]
    callers = [caller for caller, frame in enumerate(moment.frames) if name and name in frame.f_code.co_names]
    return any(moment.has_argument_on(frame, device) for frame in (callers if number < 0 else [number]))


def _knew_the_device(case: MismatchCase, owner: object, site: Site, op: OpId) -> bool:
    """Return whether what keeps a tensor has the device as an attribute, or its method had computed there before."""
    queries, device = case.queries, case.expected_trait
    if kinds.is_module(owner):
        return False  # its own move says where it is
    if any(kinds.attributes_that_name(device, owner)):
        return True
    kind, _, method = site.function.rpartition(".")
    if method == "__init__" or kind not in {base.__name__ for base in classes_of(type(owner))}:
        return False
    of_method = np.isin(queries.trace.ops.ints("site")[:op], queries.sites_beside(site))
    earlier_ops = map(OpId, np.flatnonzero(of_method)[-RECENT:].tolist())
    return any(queries.trait(row) == device for earlier_op in earlier_ops for row in queries.outputs(earlier_op))


def _is_of_a_module(queries: TraceQueries, function: str) -> bool:
    """Return whether a function is a method of a module that the trace knows, not its constructor; or a `forward`."""
    kind, _, method = function.rpartition(".")
    is_known = method != "__init__" and kind in {str(module.type) for module in queries.trace.modules}
    return bool(kind) and (is_known or method == "forward")  # that of a torch.autograd.Function


def reason(case: MismatchCase, verdict: Verdict) -> str:
    birth = case.queries.source_node(case.queries.born(case.origin.row))
    call = factory_call(birth)
    if call is None:
        return sentence("created-without-device.reason-unnamed", odd=case.odd_trait)
    factory = f"{birth.source.segment(call.func)}(...)"
    return sentence("created-without-device.reason", call=factory, odd=case.odd_trait)
