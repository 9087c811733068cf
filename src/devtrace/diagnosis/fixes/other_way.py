"""What would do as well as the fix, in words: for what was meant only the reader knows.

print(net(torch.zeros(1, 8)).shape)      # keeps a table on the CPU
net.to("cuda")                           # a buffer, or that call below
"""

import ast
from typing import NamedTuple

from devtrace.diagnosis.evidence.accelerate_hooks import device_of_hooks, owner_without_data
from devtrace.diagnosis.evidence.access_paths import is_module, modules_in
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.fixes.at_move import calls_before
from devtrace.diagnosis.fixes.fix import Fix, failing_frame
from devtrace.source.flow import path_of
from devtrace.source.safe_values import evaluate
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


class OtherWay(NamedTuple):
    """Advice beside a fix. `is_cheaper`: than an edit that moves what fails in each run of the line anew."""

    help: str
    is_cheaper: bool


def with_the_other_way(case: Case, verdict: Verdict, fix: Fix) -> str:
    """Return the words of a fix and of what would do as well, the cheaper first; of what has no edit the latter."""
    other = _call_after_the_move(case, verdict) or _leave_it_there(case, verdict) or _keep_together(case)
    if other is None:
        return fix.help
    if not fix.edits:
        return other.help
    moves_anew = all(moved.since >= case.op for moved in fix.moved)
    ways = (other.help, fix.help) if other.is_cheaper and moves_anew else (fix.help, other.help)
    return sentence("fixed.or", first=ways[0], second=ways[1])


def with_data(case: Case) -> str:
    """Say how a tensor on meta gets its data; that of a module whose hook has it is there while the module runs."""
    owner = owner_without_data(case)
    return sentence("fixed.for-meta") if owner is None else sentence("fixed.for-offloaded", module=owner.code or "")


def _call_after_the_move(case: Case, verdict: Verdict) -> OtherWay | None:
    """Name the one call above a module's move for which the module made what it keeps, on the device of its input."""
    found = case.queries.own_node(verdict.moved) if verdict.cause == "stale-copy" and verdict.module else None
    if found is None or not case.was_made_in_a_call or case.origin.arrival == "made":
        return None  # without `device=` the call below would make it on the CPU again
    calls = calls_before(found)
    if len(calls) != 1:
        return None
    words = {"code": one_line(found.code.text(calls[0])), "line": found.source.span(calls[0]).line}
    move = one_line(found.code.text(found.statement))
    return OtherWay(sentence("fixed.first-call", move=move, device=case.expected_device, **words), is_cheaper=True)


def _leave_it_there(case: Case, verdict: Verdict) -> OtherWay | None:
    """Say how a module stays on the accelerator that its own line puts it on: what goes in is moved, and what comes."""
    if verdict.cause != "wrong-device" or case.ownership is None or HOST in (case.odd_device, case.expected_device):
        return None
    frame = failing_frame(case)
    call = frame.source_node.node if frame is not None else None
    match call:
        case ast.Call(args=[ast.Name() | ast.Attribute() as given], keywords=[]) if frame is not None:
            if not path_of(call.func) or not is_module(evaluate(call.func, frame.scope())):
                return None
            there = frame.code.text_with(call, (given, f'{frame.code.text(given)}.to("{case.odd_device}")'))
            words = {"code": f'{one_line(there)}.to("{case.expected_device}")', "odd": case.odd_device}
            return OtherWay(sentence("fixed.leave-there", name=path_of(call.func), **words), is_cheaper=False)
    return None


def _keep_together(case: Case) -> OtherWay | None:
    """Name the class whose parts accelerate has put on both devices, though its own lines compute with both."""
    frame = failing_frame(case)
    module = frame.variables.get(frame.own) if frame is not None else None
    parts = modules_in(module) if is_module(module) else []
    if not {case.odd_device, case.expected_device} <= set(map(device_of_hooks, parts)):
        return None
    return OtherWay(sentence("fixed.keep-together", kind=type(module).__name__), is_cheaper=True)
