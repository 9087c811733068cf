"""The odd tensor of an op that failed over dtypes, by what the program says of dtypes, not by counts alone.

A layer that no cast reached is odd in a model that was cast; else the model's dtype is what its inputs have to have.
"""

import ast
from collections import Counter
from typing import Final

from devtrace.diagnosis.evidence import mismatch, modules
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch import Mismatch
from devtrace.diagnosis.evidence.moves import holders, modules_moved_at, move_of, moves_from, moves_of
from devtrace.diagnosis.evidence.origins import Origin, find_origin, is_like_data, lineage
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.dtypes import autocast_regions
from devtrace.dtypes.sentences import DtypeError, dtype_error
from devtrace.source import kinds
from devtrace.source.element_types import ASSIGNS, DEFAULT, PRODUCTS, REAL, TAKES_ONE, is_cast, is_floating
from devtrace.source.matching import assigned_names, called_name, is_path, keyword, names_in, nodes_of, operands
from devtrace.source.object_walk import parameters_of, registered
from devtrace.trace.ids import NO_TENSOR, OpId, TensorId
from devtrace.trace.op_kinds import INDEXING

_INDEX: Final = ("int64", "int32", "uint8", "bool")
HALVES: Final = frozenset(("float16", "bfloat16"))


def find_dtype_mismatch(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Mismatch | None:
    """Return the mismatch of an op that failed with torch's text; None if that is about something else."""
    error = dtype_error(text)
    if error is None:
        return None
    if error.refused == "gradients":
        return _of_half_gradients(moment, op)
    name = queries.op_name(op).removeprefix("aten.").partition(".")[0]
    takes_one = name in PRODUCTS or f"aten.{name}." in TAKES_ONE  # "expected scalar type Long" is of no index then
    if error.refused != "same" and not (error.refused == "index" and error.argument < 0 and takes_one):
        return _of_refused_dtype(queries, op, error)
    if text.startswith(("Found dtype", "attempting to assign a gradient")):
        return _of_named_dtypes(queries, op, mismatch.combined(queries, op), *error.named)
    if text.startswith("hook '"):  # its last op made what it returns
        results = queries.outputs(OpId(op - 1)) if queries.evidence.saw_ops else []
        return _of_named_dtypes(queries, op, results, *error.named[::-1])
    rows = compared(queries, op)
    if len({queries.trait(row) for row in rows}) < 2:
        return _of_one_tensor(queries, op, rows, error)
    odd = _odd_dtype(queries, moment, op, rows, error)
    rest = [row for row in rows if queries.trait(row) != odd]
    expected = next((row for row in rest if mismatch.is_owned(queries, row)), rest[0])  # a parameter's
    return mismatch.of_inputs(queries, op, rows, odd, queries.trait(expected))


def _dtype_of_the_argument(queries: TraceQueries, op: OpId, error: DtypeError) -> str:
    """Return the dtype of the one argument that a sentence is about, whatever the others are."""
    rows = queries.inputs(op)
    dtype = queries.trait(rows[error.argument]) if 0 <= error.argument < len(rows) else ""
    return dtype if dtype in error.named else ""


def is_saved(moment: FailingMoment, row: TensorId) -> bool:
    """Return whether a backward fails over what `x, w = ctx.saved_tensors` has: the forward may have cast copies."""
    frame = FailingFrame.of(moment, 0, "")
    assigned = nodes_of(ast.Assign, frame.body)
    saved = assigned_names(*(each for each in assigned if "saved_tensors" in ast.unparse(each)))
    node = frame.node_of(row) if saved else None
    return node is not None and not names_in(node).isdisjoint(saved)


def compared(queries: TraceQueries, op: OpId) -> list[TensorId]:
    """Return the inputs of an op that have to be of one dtype."""
    rows = list(dict.fromkeys(mismatch.combined(queries, op)))
    if _indexes(queries, op):
        rows = [rows[0], rows[-1]] if len(rows) > 1 else rows
    floating = [row for row in rows if is_floating(queries.trait(row))]
    for candidates in ([row for row in floating if queries.dims[row] != 0], floating):
        if len({queries.trait(row) for row in candidates}) > 1:
            return candidates
    return [row for row in rows if queries.trait(row) != "bool"]


def _indexes(queries: TraceQueries, op: OpId) -> bool:
    """Return whether an op reads or writes by indexes, which may have another dtype. In source it has no `aten.`."""
    name = queries.op_name(op)
    return any(full_name.startswith((*INDEXING, *ASSIGNS)) for full_name in (name, f"aten.{name}"))


def _of_named_dtypes(queries: TraceQueries, op: OpId, rows: list[TensorId], odd: str, expected: str) -> Mismatch | None:
    """Return the mismatch of a loss, its backward pass, a gradient or a hook, of which the error names both dtypes."""
    inputs = [row for row in rows if not mismatch.is_owned(queries, row)] if odd != expected else []
    sources = (source for row in inputs for source in queries.ancestors(row, past_modules=False))
    row = next((row for row in (*inputs[::-1], *sources) if queries.trait(row) == odd), None)
    return Mismatch(op, row, odd, expected, of="inputs" if is_floating(odd) else "float") if row is not None else None


def _of_one_tensor(queries: TraceQueries, op: OpId, rows: list[TensorId], error: DtypeError) -> Mismatch | None:
    """Return the mismatch of a call of which the trace has one tensor only: a recurrent layer's input."""
    named = [row for row in rows if queries.trait(row) in error.named]
    others = [dtype for dtype in error.named if dtype != queries.trait(named[0])] if named else []
    is_of_other_tensors = any(mismatch.is_owned(queries, row) for row in named)  # as tangents are: the layer's agree
    return Mismatch(op, named[0], queries.trait(named[0]), others[0]) if others and not is_of_other_tensors else None


def _of_refused_dtype(queries: TraceQueries, op: OpId, error: DtypeError) -> Mismatch | None:
    """Return the mismatch of an op that takes a certain dtype only."""
    rows = _tensors_for_numpy(queries, op) if error.refused == "numpy" else queries.inputs(op)
    refused = [row for row in rows if _is_refused(queries.trait(row), error)]
    argument = rows[error.argument] if 0 <= error.argument < len(rows) else NO_TENSOR
    previous = OpId(op - 1)  # in which torch may have read a tensor as a number for this op
    numbers = queries.inputs(previous) if queries.op_name(previous) == "aten._local_scalar_dense" else []
    floating = next((row for row in (*rows[1:], *numbers) if is_floating(queries.trait(row))), None)
    if error.refused == "result" and floating is not None and _was_cast_to_whole_numbers(queries, rows[0]):
        return Mismatch(op, floating, queries.trait(floating), queries.trait(rows[0]), of="result")
    dtypes = error.named[1:] if error.refused == "result" else error.named
    is_named = argument >= 0 and queries.trait(argument) in dtypes
    if not refused and not is_named:
        return None
    named = [row for row in refused if queries.trait(row) in dtypes]
    whole = [row for row in refused if not is_floating(queries.trait(row))]
    row = argument if is_named or argument in refused else (named or whole or refused)[-1]
    return Mismatch(op, row, queries.trait(row), _accepted_dtype(queries, op, rows, error), of=error.refused)


def _was_cast_to_whole_numbers(queries: TraceQueries, row: TensorId) -> bool:
    """Return whether a line casts a tensor to whole numbers, as `cells = centers.long()`, and so means them."""
    cast = move_of(queries, row)
    return cast is not None and is_floating(queries.trait(cast.source)) and not is_floating(queries.trait(row))


def _tensors_for_numpy(queries: TraceQueries, op: OpId) -> list[TensorId]:
    """Return the tensor that numpy got: for `policy(state).numpy()` the line's last result."""
    found = queries.op_node(op)
    if not called_name(found.node) or all(map(is_path, operands(found.node))):
        return queries.inputs(op)
    results = mismatch.results_of_the_line(queries, op)
    return [row for row in results if queries.trait(row) in HALVES][-1:] or queries.inputs(op)


def _is_refused(dtype: str, error: DtypeError) -> bool:
    match error.refused:
        case "index":
            return dtype not in _INDEX or dtype in error.named or (error.argument >= 0 and dtype != "int64")
        case "byte":
            return dtype == "uint8"
        case "mask":
            return dtype != "bool"
        case "float":
            return not is_floating(dtype)
        case "complex":
            return not dtype.startswith("complex")
        case "single":
            return dtype in HALVES or not is_floating(dtype)
        case "result":
            return dtype in error.named[1:] or not is_floating(dtype)
    return not error.named or dtype in error.named


def _accepted_dtype(queries: TraceQueries, op: OpId, rows: list[TensorId], error: DtypeError) -> str:
    """Return the dtype that an op takes; empty where no dtype would do."""
    match error.refused:
        case "index" | "byte":
            return "int64"
        case "mask":
            return "bool"
        case "complex":
            return "complex64"
        case "whole":
            return ""
        case "number":  # no whole number is infinite
            is_infinite = "int64" in error.named or "inf" in ast.unparse(queries.op_node(op).node).replace("info", "")
            return "" if is_floating(error.named[0]) else DEFAULT if is_infinite else "int64"
        case "result" if len(error.named) > 1:
            return error.named[0]
        case "float" | "result":
            return next((dtype for row in rows if is_floating(dtype := queries.trait(row))), DEFAULT)
    return DEFAULT


def _of_half_gradients(moment: FailingMoment, op: OpId) -> Mismatch | None:
    """Return the first parameter in half precision of an optimizer, whose gradients a scaler refuses."""
    optimizers = moment.walk.of_kind(kinds.is_optimizer) if moment.frames else []
    rows = (moment.row(parameter) for optimizer in optimizers for parameter in parameters_of(optimizer))
    half = next((row for row in rows if row is not None and moment.queries.trait(row) == "float16"), None)
    return Mismatch(op, half, "float16", DEFAULT, of="gradients") if half is not None else None


# Which of several dtypes is the odd one.


def _odd_dtype(queries: TraceQueries, moment: FailingMoment, op: OpId, rows: list[TensorId], error: DtypeError) -> str:
    dtypes = list(dict.fromkeys(queries.trait(row) for row in rows))
    saved = {queries.trait(row) for row in rows if is_saved(moment, row)}  # a gradient is as the forward pass computed
    return (
        _dtype_of_whole_numbers(queries, op, rows, dtypes)
        or _dtype_beside_complex(queries, moment, rows, dtypes)
        or (saved.pop() if len(saved) == 1 else "")
        or _dtype_by_model(queries, moment, op, rows, dtypes)
        or _dtype_of_the_argument(queries, op, error)
        or _dtype_by_autocast(queries, moment, op, rows)
        or _dtype_beside_gradients(queries, rows, dtypes)
        or mismatch.left_behind({dtype: _dtypes_before_casts(queries, rows, dtype) for dtype in dtypes})
        or (mismatch.not_of_the_module(queries, op, dtypes) if queries.evidence.saw_ops else "")
        or _dtype_by_default(queries, rows)
        or ("float64" if "float64" in dtypes else "")
        or mismatch.without_gradients(queries, rows, dtypes)
        or next((dtype for dtype in dtypes if not is_floating(dtype)), "")
        or (DEFAULT if DEFAULT in dtypes else dtypes[-1])
    )


def _dtype_of_whole_numbers(queries: TraceQueries, op: OpId, rows: list[TensorId], dtypes: list[str]) -> str:
    """Return the dtype of whole numbers that an op mixes with floats: floats would lose their fraction.

    Written into whole numbers, a factory's ones or zeros can be whole as well.
    """
    whole = [dtype for dtype in dtypes if not is_floating(dtype)]
    is_mixed = 0 < len(whole) < len(dtypes)
    is_written = is_mixed and _indexes(queries, op) and queries.trait(rows[0]) in whole
    origin = find_origin(queries, rows[-1])
    is_filler = origin.arrival == "made" and not is_like_data(queries, origin)
    return whole[0] if is_mixed and not (is_written and is_filler) else ""


def _dtype_beside_complex(queries: TraceQueries, moment: FailingMoment, rows: list[TensorId], dtypes: list[str]) -> str:
    """Return the dtype of a real weight that meets a spectrum in the program's own layer: it has to be complex too.

    A layer of torch's is real: what goes into it has to be made real.
    """
    real = [row for row in rows if not queries.trait(row).startswith("complex")]
    if not 0 < len(real) < len(rows) or len(dtypes) != 2:
        return ""
    weights = [name for row in real for name in moment.names(row) if name.last.kind == "parameter"]
    is_own = any(not kinds.is_installed(type(name.last.owner)) for name in weights)
    return queries.trait(real[0]) if is_own else ""


def _dtype_by_model(
    queries: TraceQueries, moment: FailingMoment, op: OpId, rows: list[TensorId], dtypes: list[str]
) -> str:
    """Return the dtype of a layer that the cast of its model missed, else that of what the model is given."""
    owned = [row for row in rows if mismatch.is_owned(queries, row)]
    layer_dtypes = list(dict.fromkeys(queries.trait(row) for row in owned))
    input_dtypes = [dtype for dtype in dtypes if dtype not in layer_dtypes]
    early = next((row for row in rows if any(_is_an_early_copy(queries, op, row, other) for other in dtypes)), None)
    if early is not None:
        return queries.trait(early)
    if not layer_dtypes or (len(layer_dtypes) == 1 and not input_dtypes):
        return ""
    others = _rest_of_the_model(queries, moment, owned[0])
    counts = Counter(map(queries.trait, others))
    if not counts and all(queries.trace.tensors.raw("role", queries.base(row)) == "buffer" for row in owned):
        return ""  # of a loss: class weights
    if len(layer_dtypes) > 1:
        return min(layer_dtypes, key=lambda dtype: (counts[dtype], dtype in map(queries.trait, set(rows) - set(owned))))
    (own,), given = layer_dtypes, input_dtypes[0]
    was_cast = any(queries.trait(move.source) == given for move in moves_of(queries, owned))  # it is meant so
    real_given, real_own = (REAL.get(dtype, dtype) if own in REAL else dtype for dtype in (given, own))
    is_missed = counts[real_given] > counts[real_own] and not was_cast
    inputs = [row for row in rows if row not in owned and queries.trait(row) == given]
    is_missed |= not was_cast and _is_newer_than_the_cast(queries, owned[0], others, given)
    is_left = own == DEFAULT and _is_left_among_models(queries, moment, owned, inputs, counts)
    return own if is_missed or is_left else given


def _dtype_by_autocast(queries: TraceQueries, moment: FailingMoment, op: OpId, rows: list[TensorId]) -> str:
    """Return the dtype that autocast gave a tensor, where the op is outside of it; within, that of autocast's list."""
    here = autocast_regions.region_of(queries, op)
    inside = here is not None and bool(here.enabled)
    origins = {queries.trait(row): find_origin(queries, row) for row in rows}
    if not queries.evidence.saw_ops:
        halves = [row for row in rows if queries.trait(row) in HALVES]
        dtypes = [queries.trait(row) for row in halves if _was_computed_under_autocast(queries, moment, row)]
        return dtypes[0] if len(dtypes) == 1 and not autocast_regions.is_written_within(queries, op) else ""
    made = [dtype for dtype in origins if autocast_regions.has_cast(queries, origins[dtype], dtype, inside=inside)]
    return made[0] if len(made) == 1 else ""


def _was_computed_under_autocast(queries: TraceQueries, moment: FailingMoment, row: TensorId) -> bool:
    """Return whether a block of autocast is around the op that made a tensor, or the line that assigned it."""
    if autocast_regions.is_written_within(queries, find_origin(queries, row).op):
        return True
    for name in moment.names(row):
        frame = FailingFrame.of(moment, name.frame, "")
        bound = frame.bindings(name.texts[0])[-1:]
        if any(autocast_regions.is_entered_around(frame.source, line) for line in bound):
            return True
    return False


def _is_newer_than_the_cast(queries: TraceQueries, row: TensorId, others: list[TensorId], dtype: str) -> bool:
    """Return whether a parameter was made only after `model.half()`, which gave others of its model a dtype."""
    casts = (cast for peer in others if queries.trait(peer) == dtype and (cast := move_of(queries, peer)) is not None)
    cast, base = next(casts, None), queries.base(row)
    if cast is None or move_of(queries, row) is not None or cast.op >= queries.producer(base):
        return False
    return not modules_moved_at(queries, cast.site).keys().isdisjoint(holders(queries, base))


def _rest_of_the_model(queries: TraceQueries, moment: FailingMoment, row: TensorId) -> list[TensorId]:
    """Return the tensors of the outermost module around a parameter, without those of its own layer."""
    base = queries.base(row)
    names = [name for name in moment.names(base) if name.last.kind in ("parameter", "buffer") and name.modules()]
    if names:
        name = max(names, key=lambda path: len(path.references))
        layer = {id(tensor) for _, tensor in registered(name.last.owner, depth=0)}
        tensors = [tensor for _, tensor in registered(name.modules()[0][1]) if id(tensor) not in layer]
        rows = [other for other in map(moment.row, tensors) if other is not None]
    else:
        rows = _outside_the_layer(queries, row, str(queries.trace.tensors.raw("name", base)).split(".")[0])
    if not rows and queries.trait(row) == "float64":  # a layer alone: that of all modules
        rows = _outside_the_layer(queries, row)
    return rows


def _is_left_among_models(
    queries: TraceQueries, moment: FailingMoment, owned: list[TensorId], inputs: list[TensorId], rest: Counter[str]
) -> bool:
    """Return whether the other models have the dtype of this model's input, which none of them computed.

    A trained model may be meant to stay in full precision.
    """
    own = {queries.base(row) for row in owned}
    optimizers = moment.walk.of_kind(kinds.is_optimizer) if moment.frames else []
    trained = {moment.row(parameter) for optimizer in optimizers for parameter in parameters_of(optimizer)}
    sources = (source for row in inputs for source in queries.ancestors(row))
    if not own.isdisjoint(trained) or any(mismatch.is_owned(queries, source) for source in sources):
        return False
    models = moment.walk.of_kind(kinds.is_module) if moment.frames else []
    rows = {moment.row(tensor) for model in models for _, tensor in registered(model)} - own
    others = Counter(queries.trait(row) for row in rows if row is not None) - rest
    return others[queries.trait(inputs[0])] > others[queries.trait(owned[0])]


def _outside_the_layer(queries: TraceQueries, row: TensorId, root: str = "") -> list[TensorId]:
    """Return the tensors of modules, or of one root module, whose names are not of a tensor's layer."""
    layer = str(queries.trace.tensors.raw("name", queries.base(row))).rpartition(".")[0]
    return [other for name, other in modules.tensors(queries, below=root) if name.rpartition(".")[0] != layer]


def _is_an_early_copy(queries: TraceQueries, op: OpId, row: TensorId, dtype: str) -> bool:
    """Return whether a tensor is a copy of a parameter, which was cast later."""
    if queries.trait(row) == dtype:
        return False
    sources = {queries.base(past) for past in lineage(queries, queries.base(row))[1:]}
    casts = [cast for cast in moves_from(queries, sources, dtype, op) if cast.op > queries.producer(queries.base(row))]
    return any(mismatch.is_owned(queries, end) for cast in casts for end in (cast.source, cast.result))


def _dtypes_before_casts(queries: TraceQueries, rows: list[TensorId], dtype: str) -> set[str]:
    """Return the dtypes that casts brought tensors of a dtype from. A computation with `dtype=` is no cast."""
    dtypes = set[str]()
    for move in moves_of(queries, (row for row in rows if queries.trait(row) == dtype)):
        match queries.op_node(move.op).node:
            case ast.Call() as call if not is_cast(called_name(call)) and keyword(call, "dtype") is not None:
                continue
        dtypes.add(queries.trait(move.source))
    return dtypes


def _dtype_beside_gradients(queries: TraceQueries, rows: list[TensorId], dtypes: list[str]) -> str:
    """Return the dtype of a gradient's partner: gradients, those in `.grad` too, have the dtype of the forward pass."""
    ops = queries.trace.ops
    makers = {row: queries.producer(row) for row in rows if queries.producer(row) >= 0}
    gradients = [row for row, op in makers.items() if ops.raw("phase", op) == "backward" and queries.kind(op) != "copy"]
    gradients += [row for row in rows if queries.trace.tensors.raw("role", queries.base(row)) == "gradient"]
    others = [dtype for dtype in dtypes if dtype not in map(queries.trait, gradients)]
    return others[0] if len(others) == 1 < len(dtypes) else ""


def _dtype_by_default(queries: TraceQueries, rows: list[TensorId]) -> str:
    """Return the default dtype if only its tensor came of a factory without `dtype=`, unless a float64 is meant."""
    origins = {queries.trait(row): find_origin(queries, row) for row in rows}
    arrivals = {dtype: "" if _is_of_a_layer(queries, each) else each.arrival for dtype, each in origins.items()}
    by_default = arrivals.get(DEFAULT) == "made" and list(arrivals.values()).count("made") == 1
    is_array = arrivals.get("float64") == "given" and queries.evidence.saw_ops
    is_exception = arrivals.get("float64") == "made-there" and not _is_mostly_float64(queries)
    return DEFAULT if by_default and not is_array and not is_exception else ""


def _is_mostly_float64(queries: TraceQueries) -> bool:
    """Return whether more lines make tensors of float64 than of the default dtype."""
    creates = map(OpId, queries.is_kind("create").nonzero()[0].tolist())
    lines = Counter({queries.op_site(op): queries.trait(row) for op in creates for row in queries.outputs(op)}.values())
    return lines["float64"] > lines[DEFAULT]


def _is_of_a_layer(queries: TraceQueries, origin: Origin) -> bool:
    """Return whether a layer computed a tensor, and so set its dtype."""
    sources = (source for row in origin.path for source in queries.made_from(row))
    return any(mismatch.is_owned(queries, source) for source in sources)
