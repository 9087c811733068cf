"""Causes that only a dtype has: numpy's float64, a number, a target, a region of autocast that was left."""

import ast
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.causes import created_without_device, ordered
from devtrace.diagnosis.causes.ordered import Causes
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Predicate, Verdict
from devtrace.diagnosis.evidence.moves import move_of, moves_from
from devtrace.diagnosis.evidence.origins import is_factory_without, is_like_data, is_of_an_array
from devtrace.diagnosis.evidence.trace_queries import NOWHERE
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.slugs import CASTS
from devtrace.dtypes import autocast_regions
from devtrace.dtypes.mismatch import HALVES, is_saved
from devtrace.source.element_types import COLLECTS, REAL, is_floating
from devtrace.source.matching import called_names, calls_in
from devtrace.source.vocabulary import DRAWS
from devtrace.trace.ids import TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name

_NOT_BY_TORCH: Final = ("float64", "float16", "bfloat16")
"""Dtypes that torch makes by default only where a program says so."""


def torch_refused_it(case: MismatchCase) -> Verdict | None:
    """Torch's sentence tells: a number that does not fit, a model in half precision beside a scaler, a target."""
    is_alone = case.mismatch.of == "float" and len(case.queries.inputs(case.op)) == 1  # no target beside a prediction
    if case.mismatch.of == "inputs" or (is_alone and _keeps_whole_numbers(case)):
        return None
    match case.mismatch.of:
        case "number":
            return Verdict("python-number", case.born, case.name)
        case "gradients":  # a scaler needs the model in float32; a line cast it
            return Verdict("wrong-device", case.born, case.name, sent_by=move_of(case.queries, case.row))
        case "complex" if (cast := move_of(case.queries, case.row)) is not None:
            return Verdict("wrong-device", case.born, case.name, sent_by=cast)
        case "single" if (left := region_was_left(case)) is not None:
            return left
    return Verdict("target-dtype", case.queries.born(_origin_of_the_values(case)), case.name)


def _origin_of_the_values(case: MismatchCase) -> TensorId:
    """Return the origin of a tensor's values, through views, copies and concatenations only."""
    queries, origin, path = case.queries, case.row, case.origin.path
    for row in path[path.index(case.row) if case.row in path else 0 :]:
        origin = row
        op = queries.producer(row)
        if op < 0 or (queries.kind(op) not in ("view", "copy") and not queries.op_name(op).startswith(COLLECTS)):
            break
    return origin


def backward_runs_outside(case: MismatchCase) -> Verdict | None:
    """A user's `backward` mixes the gradient with what its `forward` saved under autocast."""
    queries = case.queries
    if not is_saved(case.moment, case.odd_tensor):
        return None
    signs = {each.dtype for each in queries.trace.autocasts}.intersection((case.odd_trait, case.expected_trait))
    if not queries.evidence.saw_ops:  # a function that waits for the backward pass may have entered autocast before
        bodies = [frame.body for frame in FailingFrame.all_of(case.moment, case.expected_trait) if frame.is_there]
        signs = {name for body in bodies for name in called_names(body) if "autocast" in name}
    return Verdict("autocast-off", case.born, case.name) if signs else None


def line_ran_within_before(case: MismatchCase) -> Verdict | None:
    """Its line ran under autocast before, which cast the inputs, and now it runs outside, as a validation does."""
    region = autocast_regions.ran_within_before(case.queries, case.op)
    return Verdict("autocast-off", case.born, case.name) if region is not None else None


def region_was_left(case: MismatchCase) -> Verdict | None:
    """An op under autocast made it, and the failing op is outside."""
    origin, birth = case.origin, case.queries.source_node(case.born)
    if case.queries.evidence.saw_ops:
        is_left = autocast_regions.has_cast(case.queries, origin, case.odd_trait)
    else:
        is_half = case.odd_trait in HALVES and origin.arrival != "copied"
        code = birth if birth is not NOWHERE else case.queries.op_node(case.op)
        is_left = is_half and "autocast" in code.source.text
    return Verdict("autocast-off", case.born, case.name) if is_left else None


def model_was_cast_later(case: MismatchCase) -> Verdict | None:
    """A model computed it, and was cast only after that."""
    queries = case.queries
    bases = set(map(queries.base, queries.ancestors(case.row)))
    moves = (move for move in moves_from(queries, bases, case.expected_trait, case.op) if move.op > case.birth)
    cast = next((move for move in moves if any(map(queries.is_of_a_module, (move.source, move.result)))), None)
    return Verdict("stale-copy", case.born, case.name, move=cast) if cast is not None else None


def came_from_numpy(case: MismatchCase) -> Verdict | None:
    if case.origin.arrival not in ("given", "made"):
        return None
    if _is_collated(case):
        return Verdict("numpy-boundary", case.born, case.name, certainty="inferred")
    born = case.queries.born(case.origin.row)
    return Verdict("numpy-boundary", born, case.name) if is_of_an_array(case.queries, case.origin) else None


def _is_collated(case: MismatchCase) -> bool:
    """Return whether a loop gets float64 from a loader, in a program with arrays: those have that dtype."""
    match case.binding_of(case.name, unmoved=True):
        case frame, ast.For() if case.odd_trait == "float64":
            return any(name.partition(".")[0] in ("numpy", "pandas") for name in frame.source.imports.values())
    return False


def array_was_float64(case: MismatchCase) -> Verdict | None:
    """It has numpy's float64, while all else is float32."""
    is_usual = case.odd_trait == "float64" and case.expected_trait == "float32"
    return came_from_numpy(case) if is_usual else None


def default_dtype_was_set(case: MismatchCase) -> Verdict | None:
    """A factory without a dtype, or a layer, made it in another dtype than torch's own default."""
    return Verdict("wrong-device", case.born, case.name) if _was_made_by_default(case) else None


def _was_made_by_default(case: MismatchCase) -> bool:
    """Return whether a tensor of no usual dtype was made without being asked, in a program that sets the default."""
    is_made = case.origin.arrival in (("made",) if case.queries.evidence.saw_ops else ("made", "given"))
    sets_it = "set_default_" in case.queries.source_node(case.born).source.text
    return is_made and case.odd_trait in _NOT_BY_TORCH and sets_it


def weight_is_real(case: MismatchCase) -> Verdict | None:
    """A factory made a weight of real numbers for what is complex, as a spectrum is."""
    if "complex" not in case.expected_trait or case.origin.arrival not in ("made", "given"):
        return None
    born = case.queries.born(case.origin.row)
    birth = case.queries.source_node(born)
    is_made = any(is_factory_without(case.queries.by, call, birth.source) for call in calls_in(birth.statement))
    return Verdict("created-without-device", born, case.name) if is_made else None


def cast_skips_complex(case: MismatchCase) -> Verdict | None:
    """Its module was cast by `model.double()`, which casts floating-point tensors alone."""
    real = REAL.get(case.expected_trait, "") if case.odd_trait in REAL else ""
    owner = replace(case, mismatch=replace(case.mismatch, expected_trait=real)).ownership if real else None
    if owner is None or owner.last_move is None or owner.is_newer_than_the_move:
        return None
    return Verdict("never-moved", case.born, owner.name, move=owner.last_move)


def factory_had_no_dtype(case: MismatchCase) -> Verdict | None:
    """A factory used the default dtype, or an op on whole numbers did; a tensor of one number is no data to cast."""
    origin = case.origin
    if origin.arrival not in ("made", "computed") or case.odd_trait in _NOT_BY_TORCH:
        return None
    is_promoted = origin.arrival == "computed" and not autocast_regions.is_of_whole_numbers(case.queries, origin.op)
    is_data = is_like_data(case.queries, origin) and not _keeps_whole_numbers(case)
    is_meant = is_promoted or (is_data and case.queries.size(origin.row) > 1)
    return Verdict("created-without-device", case.queries.born(origin.row), case.name) if not is_meant else None


def _keeps_whole_numbers(case: MismatchCase) -> bool:
    """Return whether it is as `torch.tensor([0, 1, 0])`, made of whole numbers, where an op computes with fractions."""
    is_whole = case.odd_trait == "int64" and is_floating(case.expected_trait) and case.origin.arrival == "made"
    return is_whole and called_names(case.queries.op_node(case.origin.op).node).isdisjoint(DRAWS)


def another_dtype_was_computed(case: MismatchCase) -> Verdict | None:
    """An op made it of another dtype than its inputs have, as a line asks: `x.sum(0, dtype=torch.float32)`."""
    is_computed = case.origin.arrival == "computed"
    return Verdict("wrong-device", case.queries.born(case.origin.row), case.name) if is_computed else None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    queries, where = case.queries, {"odd": case.odd_trait, "expected": case.expected_trait}
    match verdict.kind:
        case "autocast-off":
            return _reason_of_autocast(case)
        case "numpy-boundary":
            return sentence("numpy-boundary.reason", **where)
        case "never-moved" if (move := verdict.move) and queries.trait(move.result) == REAL.get(case.expected_trait):
            return sentence("never-cast.reason-complex", line=queries.site(move.site))
        case "wrong-device" if case.mismatch.of == "gradients":
            return sentence("wrong-dtype.reason-gradients", **where)
        case "created-without-device" if _keeps_whole_numbers(case):
            return sentence("created-without-dtype.reason-whole")
        case "wrong-device" if _was_made_by_default(case) and not case.in_a_replica:
            return sentence("wrong-dtype.reason-default", **where)
    return ordered.reason_of_device(case, verdict)


def _reason_of_autocast(case: MismatchCase) -> str:
    """Say what autocast did to the tensor, and why it did nothing for the op that failed."""
    queries, origin = case.queries, case.origin
    if backward_runs_outside(case) is not None:
        return sentence("autocast-off.reason-backward")
    if (before := autocast_regions.ran_within_before(queries, case.op)) is not None and before.site is not None:
        return sentence("autocast-off.reason-before", line=Site.of(before.site))
    region_of_birth, here = (autocast_regions.region_of(queries, op) for op in (origin.op, case.op))
    op_of_list = autocast_regions.by_list(queries, origin, case.odd_trait)
    if op_of_list >= 0:
        op = short_op_name(queries.op_name(op_of_list))
        return sentence("autocast-off.reason-list", op=op, odd=case.odd_trait)
    if here is not None and here.enabled:
        return sentence("autocast-off.reason-inside", odd=case.odd_trait)
    entry = Site.of(here.site) if here is not None and here.site is not None else None
    line = entry if here else autocast_regions.exit_line(queries, region_of_birth) if region_of_birth else None
    if line is None:
        return sentence("autocast-off.reason", odd=case.odd_trait)
    key = "autocast-off.reason-disabled" if here else "autocast-off.reason-left"
    return sentence(key, odd=case.odd_trait, line=line)


PREDICATES: Final[tuple[Predicate, ...]] = (
    torch_refused_it,
    backward_runs_outside,
    line_ran_within_before,
    region_was_left,
    default_dtype_was_set,
    array_was_float64,
    cast_skips_complex,
    weight_is_real,
    *ordered.KEPT,
    model_was_cast_later,
    came_from_numpy,
    created_without_device.factory_ran_during_the_computation,
    factory_had_no_dtype,
    another_dtype_was_computed,
    *ordered.STAYED,
)
CAUSES: Final = Causes(PREDICATES, reason, CASTS)
