"""Fixes that only a dtype has: cast what numpy gives, fill with what fits, leave out a cast; each has its rank."""

import ast
from collections.abc import Iterable, Iterator
from math import isinf
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.trace_queries import NOWHERE
from devtrace.diagnosis.fixes import at_binding
from devtrace.diagnosis.fixes.changes import Anchor, Proposal, Within, rewritten
from devtrace.diagnosis.fixes.fix import Fix, Moved, Ranked, failing_frame, odd_expression, suggested
from devtrace.dtypes.autocast_regions import ran_within_before
from devtrace.dtypes.mismatch import is_saved
from devtrace.dtypes.trait import DTYPE
from devtrace.source.element_types import NUMBERS, TAKES_NUMBER, is_floating
from devtrace.source.matching import (
    alone,
    assigned_names,
    called_name,
    calls_in,
    is_step,
    keyword,
    listed,
    match_code,
    nodes_of,
    only,
    variable,
)
from devtrace.source.safe_values import evaluate
from devtrace.source.vocabulary import MAKES_ON_HOST, OF_DATA
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence


def cast_what_numpy_gives(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `torch.from_numpy(state)` into `torch.from_numpy(state).float()`."""
    birth = case.queries.own_node(case.queries.op_site(case.origin.op))
    makers = [call for call in calls_in(birth.node) if called_name(call) in (*MAKES_ON_HOST, *OF_DATA, "tensor")]
    for call in makers if len(makers) == 1 or birth.node in makers else ():
        moved = [Moved(row, OpId(case.origin.op + 1)) for row in case.queries.outputs(case.origin.op)]
        yield from _cast(case, birth.code, call, "fixed.where-made", moved)


def keep_autocast_in_backward(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `@torch.amp.custom_bwd(device_type="cuda")` above a user's `backward`, and its twin above `forward`."""
    frame = failing_frame(case)
    around = [frame.function, *frame.source.ancestors(frame.function)] if frame.function is not None else []
    bodies = (node.body for node in only(ast.ClassDef, around))
    methods = {method.name: method for body in bodies for method in only(ast.FunctionDef, body)}
    if methods.get("backward") is not frame.function or "forward" not in methods or "setup_context" in methods:
        return
    device = case.queries.device(case.odd_tensor).partition(":")[0]
    amp, arguments = f"{DTYPE.literal(frame.source, '')}amp", f'(device_type="{device}")'
    texts = {"forward": f"@{amp}.custom_fwd{arguments}", "backward": f"@{amp}.custom_bwd{arguments}"}
    edits = (frame.code.above(methods[name], text) for name, text in texts.items())
    yield from suggested(sentence("fixed.backward", **texts), *edits, moved=[Moved(case.odd_tensor, case.op)])


def enter_autocast_again(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Put `score = validate(model)` under `with torch.autocast("cuda"):`, as its function has it around other lines."""
    region = ran_within_before(case.queries, case.op)
    entry = case.queries.source_node(region.site.id) if region is not None and region.site is not None else NOWHERE
    moved = [Moved(case.odd_tensor, case.op)]
    for block in only(ast.With, [entry.statement]):
        header = f"with {', '.join(entry.code.text(item.context_expr) for item in block.items)}:"
        for frame in FailingFrame.all_of(case.moment, case.expected_trait):
            if frame.is_there and frame.function is entry.function:
                edit = frame.code.within(frame.source_node.statement, header)
                yield from suggested(sentence("fixed.enter-again", code=header), edit, moved=moved)


def cast_here_alone(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `out.numpy()` into `out.float().numpy()`; other uses keep their dtype, those of a saved weight too."""
    row = case.odd_tensor
    for frame, node in odd_expression(case) if case.mismatch.of == "numpy" or is_saved(case.moment, row) else ():
        yield from _cast(case, frame.code, node, "fixed.at-use", [Moved(row, case.op)], frame)


def _cast(
    case: MismatchCase, code: Code, node: ast.expr, key: str, moved: list[Moved], frame: FailingFrame | None = None
) -> Iterator[Fix]:
    literal = DTYPE.literal(code.source, case.expected_trait)
    dtype = frame.device_of_other_operand(node) if frame is not None and case.mismatch.of == "inputs" else literal
    return Proposal(Anchor(code, node, "at", frame), Within((node,)), dtype).fixes(key, moved)


def fill_with_what_fits(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `scores.masked_fill(mask, -1e9)` into one with `torch.finfo(scores.dtype).min`; labels are cast."""
    for frame, node in odd_expression(case) if case.expected_trait != "int64" else ():
        yield from numbers_that_fit(frame, case.odd_trait, [Moved(case.odd_tensor, case.op)], node)


def numbers_that_fit(
    frame: FailingFrame, dtype: str, moved: Iterable[Moved] = (), tensor: ast.expr | None = None
) -> Iterator[Fix]:
    """Yield the largest, or smallest, number of a dtype in place of one that overflows it."""
    of_tensor = f"{frame.code.text(tensor)}.dtype" if tensor is not None else ""
    torch = DTYPE.literal(frame.source, "").removesuffix(".")
    for call in calls_in(frame.expression):
        keywords = [keyword(call, word) for word in NUMBERS]
        argument = next(filter(None, keywords), call.args[-1] if call.args else None)
        value = _number(argument, frame.scope()) if argument is not None and called_name(call) in TAKES_NUMBER else None
        if argument is None or value is None or (isinf(value) and not is_floating(dtype)):
            continue  # a dtype of whole numbers has none that stands for infinity
        asked = keyword(call, "dtype")
        text = of_tensor or (frame.code.text(asked) if asked is not None else DTYPE.literal(frame.source, dtype))
        info = "finfo" if is_floating(dtype) else "iinfo"
        new = f"{torch}.{info}({text}).{'min' if value < 0 else 'max'}"
        yield from rewritten(frame.code, {argument: new}, "fixed.number", moved)


def invert_mask(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `1 - mask` into `~mask`."""
    frame = failing_frame(case)
    node = frame.source_node.node
    match = match_code("1 - $mask", node) or match_code("1.0 - $mask", node)
    if match is not None and case.mismatch.of == "whole":
        text = frame.code.text(match["mask"])
        new = f"~{text}" if variable(match["mask"]) or is_step(match["mask"]) else f"~({text})"
        yield from rewritten(frame.code, {node: new}, "fixed.invert", [Moved(case.odd_tensor, case.op)])


def cast_what_a_hook_returns(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn a hook's `return out` into `return out.bfloat16()`: no line hands it over to the layer that failed."""
    queries, frame = case.queries, failing_frame(case)
    op = queries.producer(queries.base(case.odd_tensor))
    birth = queries.own_node(queries.op_site(op))
    if not frame.is_there or birth.function in (None, frame.function) or any(odd_expression(case)):
        return
    results = [each.value for each in nodes_of(ast.Return, birth.function)]
    names = assigned_names(*getattr(birth.statement, "targets", ()))
    for part in listed(results[0]) if len(results) == 1 and results[0] is not None else ():
        if variable(part) in names or birth.node in ast.walk(part):
            moved = [Moved(case.odd_tensor, OpId(op + 1))]
            yield from _cast(case, birth.code, part, "fixed.where-made", moved)


def _number(node: ast.expr, scope: object) -> float | None:
    negative = match_code("-float($text)", node)
    from_text = negative or match_code("float($text)", node)  # `float("inf")`
    try:
        value = ast.literal_eval(node if from_text is None else from_text["text"])
    except ValueError:
        value = evaluate(node, scope)  # type: ignore[arg-type]
    if from_text is not None:
        return float(value) * (-1 if negative else 1) if type(value) is str else None
    return float(value) if type(value) in (int, float) else None


def leave_out_cast(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Take out `model.half()`: autocast and a scaler replace it."""
    if case.mismatch.of != "gradients" or verdict.sent_by is None:
        return
    cast = case.queries.own_node(verdict.sent_by.site)
    if match := match_code("$model.$cast()", cast.node):
        edit = cast.code.removed(cast.statement)
        if alone(cast.statement) is not cast.node:
            edit = cast.code.replaced(cast.node, cast.code.text(match["model"]))
        text, moved = f".{cast.code.method_call(cast.node)}", [Moved(verdict.sent_by.result, verdict.sent_by.op)]
        yield from suggested(sentence("fixed.leave-out-cast", code=text), edit, moved=moved)


FIRST: Final = (
    Ranked(leave_out_cast, ("wrong-device",), "a scaler needs what was there before the cast"),
    Ranked(enter_autocast_again, ("autocast-off",), "the line runs as it did before"),
    Ranked(keep_autocast_in_backward, ("autocast-off",), "the whole `backward` runs as its forward did then"),
    Ranked(cast_here_alone, ("target-dtype", "never-moved"), "numpy or a backward pass alone needs it so"),
    Ranked(invert_mask, ("target-dtype",), "masks are inverted, not subtracted"),
    Ranked(fill_with_what_fits, ("python-number",), "the number alone is wrong"),
    Ranked(cast_what_numpy_gives, ("numpy-boundary",), "all that is computed of it has the dtype then"),
)
BELOW_WHERE_IT_IS_MADE: Final = (
    Ranked(cast_what_a_hook_returns, ("wrong-device", "never-moved"), "no line hands over what a hook gives", "dtype"),
    Ranked(at_binding.move_below_binding, ("wrong-device",), "one below what made it casts the whole", "dtype"),
)
