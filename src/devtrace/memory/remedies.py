"""What lets go of memory: edits where the source shows what is meant, else advice.

What nobody needs any more comes first, however large the rest is: graphs through which no backward pass will run,
frames of an error, results of cells, a checkpoint that was loaded, a model of before.
"""

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.release_advice import (
    BY_KIND,
    Remedy,
    copies_to_the_host,
    deleted,
    each_backward,
    loaded_to_the_host,
    to_the_host,
)
from devtrace.source.defuse import path_of
from devtrace.source.kinds import is_module, is_optimizer, is_trained_leaf, requires_grad
from devtrace.source.matching import calls_in, nodes_of, owner_of
from devtrace.source.object_walk import is_tensor, parameters_of, registered
from devtrace.source.safe_values import Scope, evaluate
from devtrace.source.vocabulary import OF_BATCHES
from devtrace.trace.ids import NO_TENSOR, OpId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name


def remedies(memory: Memory, moment: FailingMoment) -> Iterator[Remedy | None]:
    """Yield what may help: first what is held for nothing, then what the largest part is."""
    of_waste = (group for group in memory.worth if group.kind in ("graph", "traceback", "history"))
    yield from (BY_KIND[group.kind](memory, group) for group in of_waste)
    yield loaded_to_the_host(memory)
    yield without_graph(memory, moment)
    yield deleted(memory, moment)
    yield outer_product(memory)
    yield made_float(memory)
    yield from (copies_to_the_host(memory, group) for group in memory.worth if group.kind == "parameter")
    for group in sorted(memory.worth, key=lambda each: not _grows(memory, each)):
        if group.kind == "named":
            yield to_the_host(memory, group)
        elif group.kind == "activation":
            yield rounds(memory) or (sentence("out-of-memory.help-activation"), ())
        elif group.kind in ("parameter", "gradient", "optimizer-state"):
            yield sentence("out-of-memory.help-optimizer"), ()
    yield sentence("out-of-memory.help"), ()


def _grows(memory: Memory, group: Group) -> bool:
    keeps = memory.keeper(group) if group.kind == "named" and group.is_contained else None
    return keeps is not None and keeps.adds


# Models that no optimizer trains and whose graphs are kept all the same: a teacher, a frozen encoder.

_HEADER = "with torch.no_grad():"


def without_graph(memory: Memory, moment: FailingMoment) -> Remedy | None:
    """Compute under `torch.no_grad()` what such a model gives, where no input of its needs a gradient either."""
    optimizers = moment.walk.of_kind(is_optimizer)
    trained = {id(parameter) for each in optimizers for parameter in parameters_of(each)}
    for group in memory.worth if trained else ():
        made = memory.code(group) if group.kind == "activation" else None
        frame = memory.frame_of(*made) if made is not None else None
        if made is None or frame is None:
            continue
        code, statement = made
        scope = Scope.of(frame)
        models = (call for call in calls_in(statement) if is_module(evaluate(call.func, scope)))
        called = {path: call for call in models if (path := path_of(call.func))}
        names = [path for path, call in called.items() if _is_untrained(call, scope, trained)]
        if names:
            is_alone = len(called) == 1 and isinstance(frame.f_globals.get("torch"), ModuleType)
            edit = code.within(statement, _HEADER) if is_alone else None
            key = "out-of-memory.help-untrained"
            return sentence(key, name=names[0], line=code.site.line), (edit,) if edit else ()
    return None


def _is_untrained(call: ast.Call, scope: Scope, trained: set[int]) -> bool:
    own = [tensor for _, tensor in registered(evaluate(call.func, scope)) if is_trained_leaf(tensor)]
    given = [evaluate(node, scope) for node in nodes_of(ast.expr, *call.args, *call.keywords) if path_of(node)]
    needs_none = bool(given) and not any(is_tensor(each) and requires_grad(each) for each in given)
    inner = [owner_of(each) for each in calls_in(call) if each is not call]  # `x.to(device)` needs none either
    is_of_tensors = all(each is not None and path_of(each) and is_tensor(evaluate(each, scope)) for each in inner)
    return needs_none and is_of_tensors and bool(own) and not any(id(each) in trained for each in own)


# A step that is too large by itself: a tensor of all pairs, or a copy of what is large.

_TIMES: Final = 8
"""An op's output that is so many times its inputs is one of all pairs."""
_PART: Final = 0.4
_FLOAT: Final = 1.9  # times the size of the same in half precision; blocks are rounded
_CASTS: Final = ("_to_copy", "float", "to")  # as recorded, and as called
_OF_PAIRS: Final = {
    "sub": "out-of-memory.help-cdist",
    "rsub": "out-of-memory.help-cdist",
    "mul": "out-of-memory.help-matmul",
}
_DIMS: Final = 2  # of a product that is no batch of products


def outer_product(memory: Memory) -> Remedy | None:
    """Advise to work in chunks where most of the memory is for a tensor of all pairs."""
    queries = memory.queries
    needed = memory.total + memory.shortage.asked
    rows = {queries.base(row): _bytes(queries, row) for row in queries.inputs(memory.failed)}
    largest = max(rows, key=lambda row: rows[row], default=NO_TENSOR)
    asked = memory.shortage.asked
    unknown = asked if len(rows) == 1 else 0  # what is computed from one tensor is as large as that
    by_op = {queries.producer(largest): rows.get(largest, 0) or unknown}
    by_op |= {memory.failed: asked} if all(rows.values()) else {}
    for op, size in reversed(by_op.items()):
        inputs = {queries.base(row) for row in queries.inputs(op)} if op >= 0 else set()
        least = _PART * needed if op == memory.failed else _PART * needed / 2
        is_of_few = len(inputs) in (1, 2) and not any(map(queries.is_of_a_module, inputs))
        is_large = size >= max(least, _TIMES * sum(_bytes(queries, row) for row in inputs))
        if is_of_few and is_large and queries.kind(op) == "compute":
            site = queries.site(queries.op_user(op))
            return sentence(_advice(memory, op), line=site.line if site else 0), ()
    return None


def _bytes(queries: TraceQueries, row: TensorId) -> int:
    """Return the bytes of a tensor, of a view of unknown shape those of what it is a view of; 0: nobody knows them."""
    size, op = queries.trace.tensors.number("bytes", row), queries.producer(row)
    if size or op < 0 or queries.kind(op) != "view":
        return size
    return max((_bytes(queries, each) for each in queries.inputs(op)), default=0)


def _advice(memory: Memory, op: OpId) -> str:
    queries = memory.queries
    name = short_op_name(queries.op_name(op))
    is_batched = any(len(queries.trace.tensors[row].shape) > _DIMS for row in queries.inputs(op))
    if name in OF_BATCHES and is_batched:
        return "out-of-memory.help-attention"
    return _OF_PAIRS.get(name, "out-of-memory.help-chunks")


def made_float(memory: Memory) -> Remedy | None:
    """Advise against a copy in float32 of what the model gave in half precision."""
    queries = memory.queries
    large = [each for each in memory.shortage.holdings if each.tensor >= 0 and each.bytes >= _PART * memory.total]
    sizes = {memory.failed: memory.shortage.asked} | {queries.producer(each.tensor): each.bytes for each in large}
    for op, size in sizes.items():
        inputs = [queries.trace.tensors[row] for row in queries.inputs(op)] if op >= 0 else []
        if inputs and short_op_name(queries.op_name(op)) in _CASTS and size >= _FLOAT * inputs[0].bytes:
            site = queries.site(queries.op_user(op))
            return sentence("out-of-memory.help-float", line=site.line if site else 0, dtype=inputs[0].dtype), ()
    return None


def rounds(memory: Memory) -> Remedy | None:
    """Advise to run backward in each round where the graphs of several hang on one sum or list."""
    for group in memory.groups:
        keeps = memory.keeper(group) if group.kind in ("named", "activation") else None
        if keeps is not None and keeps.is_of_rounds_alone:
            return each_backward(keeps)
    return None
