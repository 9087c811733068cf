"""Fixes that only a dtype has: cast what numpy gives, fill with what fits, leave out a cast; each has its rank."""

import ast
from collections.abc import Iterable, Iterator
from math import isinf
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.fixes import at_binding
from devtrace.diagnosis.fixes.changes import Anchor, Proposal, Within, rewritten
from devtrace.diagnosis.fixes.fix import Fix, Moved, Ranked, failing_frame, odd_expression, suggested
from devtrace.dtypes import autocast_regions
from devtrace.source.element_types import CAST_BY_AUTOCAST, NUMBERS, TAKES_NUMBER, is_floating, torch_dtype
from devtrace.source.kinds import is_module
from devtrace.source.matching import (
    alone,
    assigned_names,
    called_name,
    calls_in,
    keyword,
    listed,
    match_code,
    names_in,
    nodes_of,
    variable,
)
from devtrace.source.object_walk import registered
from devtrace.source.safe_values import MISSING, evaluate
from devtrace.source.vocabulary import MAKES_ON_HOST, OF_DATA
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence


def cast_what_numpy_gives(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `torch.from_numpy(state)` into `torch.from_numpy(state).float()`."""
    found = case.queries.own_node(case.queries.op_site(case.origin.op))
    calls = calls_in(found.node) if found is not None else ()
    call = next((each for each in calls if called_name(each) in (*MAKES_ON_HOST, *OF_DATA, "tensor")), None)
    if found is None or call is None:
        return
    anchor = Anchor(found.code, call, "at")
    proposal = Proposal(anchor, Within((call,)), _written(case, found.code))
    moved = [Moved(row, OpId(case.origin.op + 1)) for row in case.queries.outputs(case.origin.op)]
    yield from proposal.fixes("fixed.where-made", moved)


def cast_for_numpy(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `out.numpy()` into `out.float().numpy()`; other uses keep their dtype."""
    for frame, node in odd_expression(case) if case.mismatch.of == "numpy" else ():
        proposal = Proposal(Anchor(frame.code, node, "at", frame), Within((node,)), _written(case, frame.code))
        yield from proposal.fixes("fixed.at-use", [Moved(case.odd_tensor, case.op)])


def _written(case: MismatchCase, code: Code) -> str:
    return torch_dtype(code.source, case.expected_trait)


def fill_with_what_fits(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `scores.masked_fill(mask, -1e9)` into one with `torch.finfo(scores.dtype).min`."""
    for frame, node in odd_expression(case):
        yield from numbers_that_fit(frame, case.odd_trait, [Moved(case.odd_tensor, case.op)], node)


def numbers_that_fit(
    frame: FailingFrame, dtype: str, moved: Iterable[Moved] = (), tensor: ast.expr | None = None
) -> Iterator[Fix]:
    """Yield the largest, or smallest, number of a dtype in place of one that overflows it."""
    code = f"{frame.code.text(tensor)}.dtype" if tensor is not None else ""
    root = torch_dtype(frame.source, "").removesuffix(".")
    for call in calls_in(frame.expression):
        words = [keyword(call, word) for word in NUMBERS]
        given = next(filter(None, words), call.args[-1] if call.args else None)
        value = _number(given, frame.scope()) if given is not None and called_name(call) in TAKES_NUMBER else None
        if given is None or value is None or (isinf(value) and not is_floating(dtype)):
            continue
        asked = keyword(call, "dtype")
        named = code or (frame.code.text(asked) if asked is not None else torch_dtype(frame.source, dtype))
        info = "finfo" if is_floating(dtype) else "iinfo"
        new = f"{root}.{info}({named}).{'min' if value < 0 else 'max'}"
        yield from rewritten(frame.code, {given: new}, "fixed.number", moved)


def invert_mask(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `1 - mask` into `~mask`."""
    frame = failing_frame(case) if case.mismatch.of == "whole" else None
    node = frame.source_node.node if frame is not None else None
    found = match_code("1 - $mask", node) or match_code("1.0 - $mask", node)
    if frame is not None and found is not None and node is not None:
        text = frame.code.text(found["mask"])
        new = f"~{text}" if variable(found["mask"]) else f"~({text})"
        yield from rewritten(frame.code, {node: new}, "fixed.invert", [Moved(case.odd_tensor, case.op)])


def cast_what_a_hook_returns(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn a hook's `return out` into `return out.bfloat16()`: no line hands it over to the layer that failed."""
    queries, frame = case.queries, failing_frame(case)
    op = queries.producer(queries.base(case.odd_tensor))
    found = queries.own_node(queries.op_site(op)) if queries.of == "dtype" else None
    if frame is None or found is None or found.function in (None, frame.function) or any(odd_expression(case)):
        return
    given = [each.value for each in nodes_of(ast.Return, found.function)]
    names = assigned_names(*getattr(found.statement, "targets", ()))
    for part in listed(given[0]) if len(given) == 1 and given[0] is not None else ():
        if variable(part) in names or found.node in ast.walk(part):
            proposal = Proposal(Anchor(found.code, part, "at"), Within((part,)), _written(case, found.code))
            yield from proposal.fixes("fixed.where-made", [Moved(case.odd_tensor, OpId(op + 1))])


def cast_below(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `head.float()` below `head = build(...)`, whose layers a default dtype or an argument made otherwise."""
    return at_binding.move_below_binding(case, verdict) if case.queries.of == "dtype" else iter(())


def _number(node: ast.expr, scope: object) -> float | None:
    negated = match_code("-float($text)", node)
    written = negated or match_code("float($text)", node)
    try:
        value = ast.literal_eval(node if written is None else written["text"])
    except ValueError:
        value = evaluate(node, scope)  # type: ignore[arg-type]
    if written is not None:
        return float(value) * (-1 if negated else 1) if type(value) is str else None
    return float(value) if type(value) in (int, float) else None


def leave_out_cast(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Take out `model.half()`: autocast and a scaler replace it."""
    found = case.queries.own_node(verdict.sent_by.site) if verdict.sent_by is not None else None
    if case.mismatch.of != "gradients" or found is None or verdict.sent_by is None:
        return
    text = f".{found.code.method_call(found.node)}"
    edit, call = found.code.removed(found.statement), match_code("$model.$cast()", found.node)
    if call is not None and alone(found.statement) is not found.node:
        edit = found.code.replaced(found.node, found.code.text(call["model"]))
    moved = [Moved(verdict.sent_by.result, verdict.sent_by.op)]
    if call is not None:
        yield from suggested(sentence("fixed.leave-out-cast", code=text), edit, moved=moved)


def compute_under_autocast(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Put `with torch.autocast("cpu", dtype=torch.bfloat16):` around the line that left such a region.

    It is for a line whose result goes into nothing that would fail next: what a cast gives has the dtype of all else.
    """
    queries = case.queries
    region = autocast_regions.region_of(queries, case.origin.op)
    block = autocast_regions.block_of(queries, region) if region is not None else None
    name, here = f"{queries.op_name(case.op)}.", autocast_regions.region_of(queries, case.op)
    is_cast = name.startswith(CAST_BY_AUTOCAST) and here is None
    manager = autocast_regions.manager_of(block[1]) if block is not None else None
    if block is None or manager is None or not is_cast:
        return
    found, entered = block
    function = found.source.function(entered)
    header = f"with {found.source.segment(manager)}:"
    rows = (case.odd_tensor, *case.mismatch.others_of_odd_trait)
    for frame in FailingFrame.all_of(case.moment, case.expected_trait):
        line, statement = frame.code.site, frame.source_node.statement
        is_there = frame.source.text == found.source.text and frame.function is function
        if is_there and _is_for_promoting_ops(frame, statement):
            help, moved = sentence("fixed.under-autocast", code=header, line=line), [Moved(r, case.op) for r in rows]
            yield from suggested(help, frame.code.within(statement, header), moved=moved)


def _is_for_promoting_ops(frame: FailingFrame, statement: ast.stmt) -> bool:
    """Return whether a statement's result stays in its function, away from layers."""
    given = assigned_names(*getattr(statement, "targets", ()))
    if not given:
        return False
    for later in frame.statements():
        if frame.source.span(later).line <= frame.line or names_in(later).isdisjoint(given):
            continue
        taken = [call for call in calls_in(later) if any(variable(each) in given for each in call.args)]
        functions = [evaluate(call.func, frame.scope()) for call in taken]
        goes_on = any(each is MISSING or (is_module(each) and any(registered(each))) for each in functions)
        if goes_on or any(nodes_of(ast.Return, later)):
            return False
    return True


FIRST: Final = (
    Ranked(leave_out_cast, ("wrong-device",), "a scaler needs what was there before the cast"),
    Ranked(compute_under_autocast, ("autocast-off",), "it is computed as the line before it"),
    Ranked(cast_for_numpy, ("target-dtype",), "numpy alone has no such dtype, and a model may go on with it"),
    Ranked(invert_mask, ("target-dtype",), "masks are inverted, not subtracted"),
    Ranked(fill_with_what_fits, ("python-number",), "the number alone is wrong"),
    Ranked(cast_what_numpy_gives, ("numpy-boundary",), "all that is computed of it has the dtype then"),
)
BELOW_WHERE_IT_IS_MADE: Final = (
    Ranked(cast_what_a_hook_returns, ("wrong-device", "never-moved"), "no line hands over what a hook gives"),
    Ranked(cast_below, ("wrong-device",), "no line casts it, and one below what made it can"),
)
