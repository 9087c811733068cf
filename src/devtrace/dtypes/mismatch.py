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
        return _half_gradients(moment, op)
    plain = queries.op_name(op).removeprefix("aten.").partition(".")[0]
    takes_one = plain in PRODUCTS or f"aten.{plain}." in TAKES_ONE  # "expected scalar type Long" is of no index then
    if error.refused != "same" and not (error.refused == "index" and error.argument < 0 and takes_one):
        return _refused(queries, op, error)
    if text.startswith(("Found dtype", "attempting to assign a gradient")):
        return _of_another(queries, op, mismatch.combined(queries, op), *error.named)
    if text.startswith("hook '"):  # its last op made what it returns
        made = queries.outputs(OpId(op - 1)) if queries.evidence.saw_ops else []
        return _of_another(queries, op, made, *error.named[::-1])
    rows = compared(queries, op)
    if len({queries.trait(row) for row in rows}) < 2:
        return _only_one(queries, op, rows, error)
    odd = _odd(queries, moment, op, rows, error)
    rest = [row for row in rows if queries.trait(row) != odd]
    expected = next((row for row in rest if mismatch.is_owned(queries, row)), rest[0])  # a parameter's
    return mismatch.of_inputs(queries, op, rows, odd, queries.trait(expected))


def _of_the_argument(queries: TraceQueries, op: OpId, error: DtypeError) -> str:
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
    if _assigns(queries, op):
        rows = [rows[0], rows[-1]] if len(rows) > 1 else rows
    floating = [row for row in rows if is_floating(queries.trait(row))]
    for mixed in ([row for row in floating if queries.dims[row] != 0], floating):
        if len({queries.trait(row) for row in mixed}) > 1:
            return mixed
    return [row for row in rows if queries.trait(row) != "bool"]


def _assigns(queries: TraceQueries, op: OpId) -> bool:
    """Return whether an op indexes or writes by indexes, which may have another dtype; read, it has no `aten.`."""
    name = queries.op_name(op)
    return any(each.startswith((*INDEXING, *ASSIGNS)) for each in (name, f"aten.{name}"))


def _of_another(queries: TraceQueries, op: OpId, rows: list[TensorId], odd: str, expected: str) -> Mismatch | None:
    """Return the mismatch of a loss, its backward pass, a gradient or a hook, of which the error names both dtypes."""
    given = [row for row in rows if not mismatch.is_owned(queries, row)] if odd != expected else []
    made = (row for each in given for row in queries.ancestors(each, past_modules=False))
    row = next((row for row in (*given[::-1], *made) if queries.trait(row) == odd), None)
    return Mismatch(op, row, odd, expected, of="inputs" if is_floating(odd) else "float") if row is not None else None


def _only_one(queries: TraceQueries, op: OpId, rows: list[TensorId], error: DtypeError) -> Mismatch | None:
    """Return the mismatch of a call of which the trace has one tensor only: a recurrent layer's input."""
    named = [row for row in rows if queries.trait(row) in error.named]
    others = [dtype for dtype in error.named if dtype != queries.trait(named[0])] if named else []
    is_of_other_tensors = any(mismatch.is_owned(queries, row) for row in named)  # as tangents are: the layer's agree
    return Mismatch(op, named[0], queries.trait(named[0]), others[0]) if others and not is_of_other_tensors else None


def _refused(queries: TraceQueries, op: OpId, error: DtypeError) -> Mismatch | None:
    """Return the mismatch of an op that takes a certain dtype only."""
    rows = _given_to_numpy(queries, op) if error.refused == "numpy" else queries.inputs(op)
    wrong = [row for row in rows if _is_refused(queries.trait(row), error)]
    at = rows[error.argument] if 0 <= error.argument < len(rows) else NO_TENSOR
    before = OpId(op - 1)  # in which torch may have read a tensor as a number for this op
    numbers = queries.inputs(before) if queries.op_name(before) == "aten._local_scalar_dense" else []
    beside = next((row for row in (*rows[1:], *numbers) if is_floating(queries.trait(row))), None)
    if error.refused == "result" and beside is not None and _was_made_whole(queries, rows[0]):
        return Mismatch(op, beside, queries.trait(beside), queries.trait(rows[0]), of="result")
    named = error.named[1:] if error.refused == "result" else error.named
    is_named = at >= 0 and queries.trait(at) in named
    if not wrong and not is_named:
        return None
    likely = [row for row in wrong if queries.trait(row) in named]
    whole = [row for row in wrong if not is_floating(queries.trait(row))]
    row = at if is_named or at in wrong else (likely or whole or wrong)[-1]
    return Mismatch(op, row, queries.trait(row), _taken(queries, op, rows, error), of=error.refused)


def _was_made_whole(queries: TraceQueries, row: TensorId) -> bool:
    """Return whether a line casts a tensor to whole numbers, as `cells = centers.long()`: it is meant to have these."""
    cast = move_of(queries, row)
    return cast is not None and is_floating(queries.trait(cast.source)) and not is_floating(queries.trait(row))


def _given_to_numpy(queries: TraceQueries, op: OpId) -> list[TensorId]:
    """Return the tensor that numpy got: for `policy(state).numpy()` the line's last result."""
    found = queries.op_node(op)
    if not called_name(found.node) or all(map(is_path, operands(found.node))):
        return queries.inputs(op)
    made = mismatch.results_of_the_line(queries, op)
    return [row for row in made if queries.trait(row) in HALVES][-1:] or queries.inputs(op)


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


def _taken(queries: TraceQueries, op: OpId, rows: list[TensorId], error: DtypeError) -> str:
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


def _half_gradients(moment: FailingMoment, op: OpId) -> Mismatch | None:
    """Return the first parameter in half precision of an optimizer, whose gradients a scaler refuses."""
    optimizers = moment.walk.of_kind(kinds.is_optimizer) if moment.frames else []
    rows = (moment.row(parameter) for optimizer in optimizers for parameter in parameters_of(optimizer))
    half = next((row for row in rows if row is not None and moment.queries.trait(row) == "float16"), None)
    return Mismatch(op, half, "float16", DEFAULT, of="gradients") if half is not None else None


# Which of several dtypes is the odd one.


def _odd(queries: TraceQueries, moment: FailingMoment, op: OpId, rows: list[TensorId], error: DtypeError) -> str:
    dtypes = list(dict.fromkeys(queries.trait(row) for row in rows))
    saved = {queries.trait(row) for row in rows if is_saved(moment, row)}  # a gradient is as the forward pass computed
    return (
        _of_whole_numbers(queries, op, rows, dtypes)
        or _real_beside_complex(queries, moment, rows, dtypes)
        or (saved.pop() if len(saved) == 1 else "")
        or _of_the_model(queries, moment, op, rows, dtypes)
        or _of_the_argument(queries, op, error)
        or _by_autocast(queries, moment, op, rows)
        or _beside_a_gradient(queries, rows, dtypes)
        or mismatch.left_behind({dtype: _cast_from(queries, rows, dtype) for dtype in dtypes})
        or (mismatch.not_of_the_module(queries, op, dtypes) if queries.evidence.saw_ops else "")
        or _made_by_default(queries, rows, dtypes)
        or ("float64" if "float64" in dtypes else "")
        or mismatch.without_gradients(queries, rows, dtypes)
        or next((dtype for dtype in dtypes if not is_floating(dtype)), "")
        or (DEFAULT if DEFAULT in dtypes else dtypes[-1])
    )


def _of_whole_numbers(queries: TraceQueries, op: OpId, rows: list[TensorId], dtypes: list[str]) -> str:
    """Return the dtype of whole numbers that an op mixes with floats: floats would lose their fraction.

    Written into whole numbers, a factory's ones or zeros can be whole as well.
    """
    whole = [dtype for dtype in dtypes if not is_floating(dtype)]
    is_mixed = 0 < len(whole) < len(dtypes)
    is_written = is_mixed and _assigns(queries, op) and queries.trait(rows[0]) in whole
    source = find_origin(queries, rows[-1])
    is_filler = source.arrival == "made" and not is_like_data(queries, source)
    return whole[0] if is_mixed and not (is_written and is_filler) else ""


def _real_beside_complex(queries: TraceQueries, moment: FailingMoment, rows: list[TensorId], dtypes: list[str]) -> str:
    """Return the dtype of a real weight of the program's own layer: it meets a spectrum, and has to be complex too.

    A layer of torch's is real: what goes into it has to be made real.
    """
    real = [row for row in rows if not queries.trait(row).startswith("complex")]
    if not 0 < len(real) < len(rows) or len(dtypes) != 2:
        return ""
    weights = [name for row in real for name in moment.names(row) if name.last.kind == "parameter"]
    is_own = any(not kinds.is_installed(type(name.last.owner)) for name in weights)
    return queries.trait(real[0]) if is_own else ""


def _of_the_model(
    queries: TraceQueries, moment: FailingMoment, op: OpId, rows: list[TensorId], dtypes: list[str]
) -> str:
    """Return the dtype of a layer that the cast of its model missed, else that of what the model is given."""
    owned = [row for row in rows if mismatch.is_owned(queries, row)]
    theirs = list(dict.fromkeys(queries.trait(row) for row in owned))
    given = [dtype for dtype in dtypes if dtype not in theirs]
    early = next((row for row in rows if any(_is_an_early_copy(queries, op, row, other) for other in dtypes)), None)
    if early is not None:
        return queries.trait(early)
    if not theirs or (len(theirs) == 1 and not given):
        return ""
    others = _rest_of_the_model(queries, moment, owned[0])
    rest = Counter(queries.trait(each) for each in others)
    if not rest and all(queries.trace.tensors.raw("role", queries.base(row)) == "buffer" for row in owned):
        return ""  # of a loss: class weights
    if len(theirs) > 1:
        return min(theirs, key=lambda dtype: (rest[dtype], dtype in map(queries.trait, set(rows) - set(owned))))
    was_cast = any(queries.trait(move.source) == given[0] for move in moves_of(queries, owned))  # it is meant so
    both = [REAL.get(dtype, dtype) if theirs[0] in REAL else dtype for dtype in (given[0], theirs[0])]
    is_missed = rest[both[0]] > rest[both[1]] and not was_cast
    asked = [row for row in rows if row not in owned and queries.trait(row) == given[0]]
    is_missed |= not was_cast and _is_newer_than_the_cast(queries, owned[0], others, given[0])
    is_left = theirs[0] == DEFAULT and _is_left_among_models(queries, moment, owned, asked, rest)
    return theirs[0] if is_missed or is_left else given[0]


def _by_autocast(queries: TraceQueries, moment: FailingMoment, op: OpId, rows: list[TensorId]) -> str:
    """Return the dtype that autocast gave a tensor, where the op is outside of it; within, that of autocast's list."""
    here = autocast_regions.region_of(queries, op)
    is_within = here is not None and bool(here.enabled)
    origins = {queries.trait(row): find_origin(queries, row) for row in rows}
    if not queries.evidence.saw_ops:
        halves = [row for row in rows if queries.trait(row) in HALVES]
        read = [queries.trait(row) for row in halves if _is_read_under_autocast(queries, moment, row)]
        return read[0] if len(read) == 1 and not autocast_regions.is_read_within(queries, op) else ""
    made = [
        dtype for dtype, each in origins.items() if autocast_regions.made_it(queries, each, dtype, inside=is_within)
    ]
    return made[0] if len(made) == 1 else ""


def _is_read_under_autocast(queries: TraceQueries, moment: FailingMoment, row: TensorId) -> bool:
    """Return whether a block of autocast is around what made a tensor, or around the line that a variable has it of."""
    if autocast_regions.is_read_within(queries, find_origin(queries, row).op):
        return True
    for name in moment.names(row):
        frame = FailingFrame.of(moment, name.frame, "")
        bound = frame.bindings(name.texts[0])[-1:]
        if any(autocast_regions.is_entered_around(frame.source, each) for each in bound):
            return True
    return False


def _is_newer_than_the_cast(queries: TraceQueries, row: TensorId, others: list[TensorId], dtype: str) -> bool:
    """Return whether a parameter was made after a cast of a module that holds it, in the dtype that the cast found."""
    found = (move for each in others if queries.trait(each) == dtype and (move := move_of(queries, each)) is not None)
    cast, base = next(found, None), queries.base(row)
    if cast is None or move_of(queries, row) is not None or cast.op >= queries.producer(base):
        return False
    return not modules_moved_at(queries, cast.site).keys().isdisjoint(holders(queries, base))


def _rest_of_the_model(queries: TraceQueries, moment: FailingMoment, row: TensorId) -> list[TensorId]:
    """Return the tensors of the outermost module around a parameter, its own layer left out."""
    base = queries.base(row)
    names = [name for name in moment.names(base) if name.last.kind in ("parameter", "buffer") and name.modules()]
    if names:
        name = max(names, key=lambda each: len(each.references))
        layer = {id(tensor) for _, tensor in registered(name.last.owner, depth=0)}
        tensors = [tensor for _, tensor in registered(name.modules()[0][1]) if id(tensor) not in layer]
        found = [each for each in map(moment.row, tensors) if each is not None]
    else:
        found = _outside_the_layer(queries, row, str(queries.trace.tensors.raw("name", base)).split(".")[0])
    if not found and queries.trait(row) == "float64":  # a layer alone: that of all modules
        found = _outside_the_layer(queries, row)
    return found


def _is_left_among_models(
    queries: TraceQueries, moment: FailingMoment, owned: list[TensorId], given: list[TensorId], rest: Counter[str]
) -> bool:
    """Return whether the other models have the dtype of this model's input, which none of them computed.

    A trained model may be meant to stay in full precision.
    """
    own = {queries.base(row) for row in owned}
    optimizers = moment.walk.of_kind(kinds.is_optimizer) if moment.frames else []
    trained = {moment.row(each) for optimizer in optimizers for each in parameters_of(optimizer)}
    made_of = (past for row in given for past in queries.ancestors(row))
    if not own.isdisjoint(trained) or any(mismatch.is_owned(queries, past) for past in made_of):
        return False
    models = moment.walk.of_kind(kinds.is_module) if moment.frames else []
    alive = {moment.row(each) for model in models for _, each in registered(model)} - own
    others = Counter(queries.trait(row) for row in alive if row is not None) - rest
    return others[queries.trait(given[0])] > others[queries.trait(owned[0])]


def _outside_the_layer(queries: TraceQueries, row: TensorId, root: str = "") -> list[TensorId]:
    """Return the tensors of modules, those of one root if it is given, that are not of a tensor's layer by name."""
    layer = str(queries.trace.tensors.raw("name", queries.base(row))).rpartition(".")[0]
    return [each for name, each in modules.tensors(queries, below=root) if name.rpartition(".")[0] != layer]


def _is_an_early_copy(queries: TraceQueries, op: OpId, row: TensorId, dtype: str) -> bool:
    """Return whether a tensor is a copy of a parameter, which was cast later."""
    if queries.trait(row) == dtype:
        return False
    copied = {queries.base(each) for each in lineage(queries, queries.base(row))[1:]}
    moves = [each for each in moves_from(queries, copied, dtype, op) if each.op > queries.producer(queries.base(row))]
    return any(mismatch.is_owned(queries, end) for each in moves for end in (each.source, each.result))


def _cast_from(queries: TraceQueries, rows: list[TensorId], dtype: str) -> set[str]:
    """Return from which dtypes casts brought tensors of a dtype; what is computed in it, by `dtype=`, is no cast."""
    found = set[str]()
    for move in moves_of(queries, (row for row in rows if queries.trait(row) == dtype)):
        match queries.op_node(move.op).node:
            case ast.Call() as call if not is_cast(called_name(call)) and keyword(call, "dtype") is not None:
                continue
        found.add(queries.trait(move.source))
    return found


def _beside_a_gradient(queries: TraceQueries, rows: list[TensorId], dtypes: list[str]) -> str:
    """Return the dtype of a gradient's partner: gradients, those in `.grad` too, have the dtype of the forward pass."""
    ops = queries.trace.ops
    makers = {row: queries.producer(row) for row in rows if queries.producer(row) >= 0}
    passed = [row for row, op in makers.items() if ops.raw("phase", op) == "backward" and queries.kind(op) != "copy"]
    passed += [row for row in rows if queries.trace.tensors.raw("role", queries.base(row)) == "gradient"]
    others = [dtype for dtype in dtypes if dtype not in map(queries.trait, passed)]
    return others[0] if len(others) == 1 < len(dtypes) else ""


def _made_by_default(queries: TraceQueries, rows: list[TensorId], dtypes: list[str]) -> str:
    """Return the default dtype of a factory's result beside tensors from elsewhere, but not beside a rare float64."""
    origins = {queries.trait(row): find_origin(queries, row) for row in rows}
    made = {dtype: "" if _is_of_a_layer(queries, each) else each.arrival for dtype, each in origins.items()}
    by_default = made.get(DEFAULT) == "made" and list(made.values()).count("made") == 1
    is_array = made.get("float64") == "given" and queries.evidence.saw_ops
    is_exception = made.get("float64") == "made-there" and not _is_mostly_float64(queries)
    return DEFAULT if by_default and not is_array and not is_exception else ""


def _is_mostly_float64(queries: TraceQueries) -> bool:
    """Return whether more lines make tensors of float64 than of the default dtype."""
    creates = map(OpId, queries.is_kind("create").nonzero()[0].tolist())
    lines = Counter({queries.op_site(op): queries.trait(row) for op in creates for row in queries.outputs(op)}.values())
    return lines["float64"] > lines[DEFAULT]


def _is_of_a_layer(queries: TraceQueries, origin: Origin) -> bool:
    """Return whether a layer computed a tensor, and so set its dtype."""
    made_of = (row for each in origin.path for row in queries.made_from(each))
    return any(mismatch.is_owned(queries, row) for row in made_of)
