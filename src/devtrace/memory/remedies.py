"""What lets go of memory: edits where the source shows what is meant, else advice.

What nobody needs any more comes first, however large the rest is: graphs through which no backward pass will run,
frames of an error, results of cells, a checkpoint that was loaded, a model of before.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.memory.holdings import Group, Memory, like
from devtrace.memory.release_advice import (
    BY_KIND,
    Remedy,
    copies_to_the_host,
    deleted,
    each_backward,
    loaded_to_the_host,
    to_the_host,
)
from devtrace.source.flow import path_of
from devtrace.source.kinds import is_module, is_optimizer, is_trained_leaf, requires_grad
from devtrace.source.matching import called_names, calls_in, nodes_of, owner_of
from devtrace.source.object_walk import is_tensor, parameters_of, registered
from devtrace.source.safe_values import Scope, evaluate
from devtrace.source.vocabulary import OF_BATCHES
from devtrace.trace.ids import NO_CALL, NO_TENSOR, CallId, OpId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name


def remedies(memory: Memory, moment: FailingMoment) -> Iterator[Remedy | None]:
    """Yield what may help: first what is held for nothing, then what the largest part is."""
    of_waste = (group for group in memory.worth if group.kind in ("graph", "traceback", "history"))
    yield from (BY_KIND[group.kind](memory, group) for group in of_waste)
    yield loaded_to_the_host(memory)
    yield made_double(memory)
    yield without_graph(memory, moment)
    yield deleted(memory, moment)
    yield one_hot(memory)
    yield outer_product(memory)
    yield made_float(memory)
    yield from (copies_to_the_host(memory, group) for group in memory.worth if group.kind == "parameter")
    for group in sorted(memory.worth, key=lambda each: not _grows(memory, each)):
        if group.kind == "named":
            yield to_the_host(memory, group)
        elif group.kind == "activation":
            yield rounds(memory) or smaller(memory, group)
        elif group.kind in ("parameter", "gradient", "optimizer-state"):
            of_all = short_op_name(memory.queries.op_name(memory.failed)).startswith("_foreach")
            yield sentence("out-of-memory.help-foreach" if of_all else "out-of-memory.help-optimizer"), ()
    yield sentence("out-of-memory.help"), ()


def _grows(memory: Memory, group: Group) -> bool:
    keeps = memory.keeper(group) if group.kind == "named" and group.is_contained else None
    return keeps is not None and keeps.adds


# Models that no optimizer trains and whose graphs are kept all the same: a teacher, a frozen encoder.

_HEADER = "with torch.no_grad():"


def without_graph(memory: Memory, moment: FailingMoment) -> Remedy | None:
    """Compute under `torch.no_grad()` what such a model gives, where no input of its needs a gradient either."""
    optimizers = filter(is_optimizer, moment.walk.objects.values())
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


# A step that is too large by itself: a tensor of all pairs, or activations of a batch; how large a one fits.

_TIMES: Final = 8
"""An op's output that is so many times its inputs is one of all pairs."""
_PART: Final = 0.4
_MOST_OF_IT: Final = 0.75
_FLOAT: Final = 1.9  # times the size of the same in half precision; blocks are rounded
_MARGIN: Final = 0.85  # the allocator's blocks
_OF_BACKWARD: Final = 3  # times the tensor that did not fit: its own, and the gradients of a backward pass
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


def one_hot(memory: Memory) -> Remedy | None:
    """Advise to pick rows by their index where most of the memory is for rows of zeros and a one."""
    queries = memory.queries
    sizes = {memory.groups[0].born(): memory.groups[0].bytes} if memory.groups else {}
    sizes[queries.op_user(memory.failed)] = memory.shortage.asked
    for row, size in sizes.items():
        site, node = queries.site(row), queries.source_node(row)
        is_large = size >= _PART * (memory.total + memory.shortage.asked)
        if is_large and site is not None and node is not None and "one_hot" in called_names(node.node):
            return sentence("out-of-memory.help-one-hot", line=site.line), ()
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


def made_double(memory: Memory) -> Remedy | None:
    """Advise float32 where most of the memory is float64, as NumPy makes arrays."""
    groups = [group for group in memory.worth if memory.dtype(group) == "float64"]
    if not groups or sum(group.bytes for group in groups) < memory.total / 2:
        return None
    site = memory.queries.site(groups[0].born()) or getattr(memory.keeper(groups[0]), "site", None)
    return (sentence("out-of-memory.help-double", line=site.line), ()) if site is not None else None


def rounds(memory: Memory) -> Remedy | None:
    """Advise to run backward in each round where the graphs of several hang on one sum or list."""
    for group in memory.groups:
        keeps = memory.keeper(group) if group.kind in ("named", "activation") else None
        if keeps is not None and keeps.is_of_rounds_alone:
            return each_backward(keeps)
    return None


def smaller(memory: Memory, group: Group) -> Remedy:
    """Advise a smaller batch, as large as it may be where that can be told, or to keep less of each layer."""
    found = _batch(memory, group)
    if found is None:
        return sentence("out-of-memory.help-activation"), ()
    batch, fits = found
    less = sentence("out-of-memory.help-less", name=group.name)
    return sentence("out-of-memory.help-batch", batch=batch, fits=fits, less=less), ()


def _batch(memory: Memory, group: Group) -> tuple[int, int] | None:
    """Return the size of the batch, and of one that fits, by the layers that have run and those still to come."""
    root = _running(memory, group)
    batch = _batch_size(memory, root) if root >= 0 else 0
    whole = _whole(memory, group, root) if batch > 1 else 0
    if not whole or not memory.shortage.limit:
        return None
    sizes: Counter[str] = Counter()
    for each in memory.groups:
        sizes[each.kind] += each.bytes
    trained = max(sizes["parameter"], sizes["gradient"])
    fixed = sum(sizes[kind] for kind in ("parameter", "buffer", "optimizer-state", "graph")) + trained
    scaled = whole + _OF_BACKWARD * memory.shortage.asked + sizes["named"]
    scaled = max(scaled, memory.total - fixed + memory.shortage.asked)  # a backward pass has freed some of it
    fits = int(batch * _MARGIN * (memory.shortage.limit - fixed) / scaled)
    return (batch, fits) if 1 <= fits < batch else None


def _running(memory: Memory, group: Group) -> CallId:
    """Return the outermost call that made a group, -1 where several did: nobody knows how many are to come."""
    calls: Counter[CallId] = Counter()
    for each in group.holdings:
        calls[memory.outermost(each)] += each.bytes
    (most, size), *_ = calls.most_common(1)
    return most if size > _MOST_OF_IT * group.bytes else NO_CALL


def _batch_size(memory: Memory, call: CallId) -> int:
    """Return the first dimension of what a call was given: of the first input of its first op that no module owns."""
    queries = memory.queries
    begin, end = (queries.trace.calls.number(name, call) for name in ("begin", "end"))
    for op in map(OpId, range(begin, max(end, begin + 1))):
        for row in queries.inputs(op):
            if not queries.is_of_a_module(queries.base(row)):
                dims = queries.trace.tensors[row].shape
                return int(dims[0]) if len(dims) > 1 else 0
    return 0


def _whole(memory: Memory, group: Group, root: CallId) -> int:
    """Return what a running call keeps when it is at its end: each layer at the least what others like it keep."""
    queries, calls, modules = memory.queries, memory.queries.trace.calls, memory.queries.trace.modules
    module_of, parent_of = calls.ints("module"), modules.ints("parent")
    made: Counter[int] = Counter()  # by module
    for each in group.holdings:
        around = queries.calls_around(queries.producer(each.tensor))
        if root in around:
            made[int(module_of[around[0]])] += each.bytes
    is_over = (calls.ints("begin") >= calls.number("begin", root)) & (calls.ints("end") <= memory.failed)
    known: dict[str, list[int]] = {}
    for module in set(module_of[is_over].tolist()):
        for kind in _kinds(memory, module):
            known.setdefault(kind, []).extend([made[module]] if made[module] else [])
    inside, whole = {int(module_of[root])}, sum(made.values())
    for module in range(len(modules)):
        if parent_of[module] in inside:
            inside.add(module)
            alike = next((known[kind] for kind in _kinds(memory, module) if kind in known), [])
            whole += max(sum(alike) // max(len(alike), 1) - made[module], 0)
    return whole if any(known.values()) else 0


def _kinds(memory: Memory, module: int) -> tuple[str, str]:
    """Return what layers that are alike share: `net.blocks.*.0` of `net.blocks.3.0`, else their type."""
    modules = memory.queries.trace.modules
    around, _, last = str(modules.raw("path", module)).rpartition(".")
    return f"{like(around)}.{last}", str(modules.raw("type", module))
