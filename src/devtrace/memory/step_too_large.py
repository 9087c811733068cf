"""A step that is too large by itself: a tensor of all pairs, or activations of a batch; how large a one fits."""

from __future__ import annotations

from collections import Counter
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.memory import release_advice
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.release_advice import Remedy
from devtrace.source.matching import called_names
from devtrace.source.vocabulary import OF_BATCHES
from devtrace.trace.ids import NO_CALL, NO_OP, NO_TENSOR, CallId, OpId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name

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
    by_op = {queries.producer(largest) if largest >= 0 else NO_OP: rows.get(largest, 0) or unknown}
    by_op |= {memory.failed: asked} if all(rows.values()) else {}
    for op, size in reversed(by_op.items()):
        inputs = {queries.base(row) for row in queries.inputs(op)} if op >= 0 else set()
        least = _PART * needed if op == memory.failed else _PART * needed / 2
        if (
            len(inputs) not in (1, 2)
            or any(map(queries.is_of_a_module, inputs))
            or queries.kind(op) != "compute"
            or size < least
        ):
            continue
        if size >= _TIMES * sum(_bytes(queries, row) for row in inputs):
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
    sizes = {memory.failed: memory.shortage.asked} | {memory.producer(each): each.bytes for each in large}
    for op, size in sizes.items():
        inputs = [queries.trace.tensors[row] for row in queries.inputs(op)] if op >= 0 else []
        if inputs and short_op_name(queries.op_name(op)) in _CASTS and size >= _FLOAT * inputs[0].bytes:
            site = queries.site(queries.op_user(op))
            line = site.line if site else 0
            return sentence("out-of-memory.help-float", line=line, dtype=inputs[0].dtype), ()
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
            return release_advice.each_backward(keeps)
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
    layers = _Layers(memory, group, root)
    if batch < 2 or layers.whole is None or not memory.shortage.limit:
        return None
    sizes: Counter[str] = Counter()
    for each in memory.groups:
        sizes[each.kind] += each.bytes
    trained = max(sizes["parameter"], sizes["gradient"])
    fixed = sum(sizes[kind] for kind in ("parameter", "buffer", "optimizer-state", "graph")) + trained
    scaled = layers.whole + _OF_BACKWARD * memory.shortage.asked + sizes["named"]
    scaled = max(scaled, memory.total - fixed + memory.shortage.asked)  # a backward pass has freed some of it
    fits = int(batch * _MARGIN * (memory.shortage.limit - fixed) / scaled)
    return (batch, fits) if 1 <= fits < batch else None


def _running(memory: Memory, group: Group) -> CallId:
    """Return the outermost call that made a group, -1 where several did: nobody knows how many are to come."""
    calls: Counter[CallId] = Counter()
    for each in group.holdings:
        calls[memory.outermost(memory.producer(each))] += each.bytes
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


class _Layers:
    """Bytes that the layers of a running call keep: those that have run, and by their like those to come."""

    def __init__(self, memory: Memory, group: Group, root: CallId) -> None:
        self.memory = memory
        self.calls = memory.queries.trace.calls
        self.made = {each.tensor: (memory.producer(each), each.bytes) for each in group.holdings}
        self.whole = self._whole(root) if root >= 0 else None

    def _whole(self, call: CallId) -> int | None:
        """Return what a call keeps when it is at its end; None where nothing like a layer to come has run."""
        inside, own = self._by_part(call)
        if not inside:
            return own if not self._is_open(call) else None
        ended = {part: size for part, size in inside.items() if not self._is_open(part)}
        kinds: dict[str, list[int]] = {}
        for part, size in ended.items():
            kinds.setdefault(self._type(part), []).append(size)
        total = own + sum(ended.values())
        missing = [part for part in inside if part not in ended]
        for kind in [*(self._type(part) for part in missing), *self._to_come(inside)]:
            if kind in kinds:
                total += sum(kinds[kind]) // len(kinds[kind])
            elif missing and kind == self._type(missing[0]):
                deeper = self._whole(missing[0])
                if deeper is None:
                    return None
                total += deeper
        return total

    def _by_part(self, call: CallId) -> tuple[dict[CallId, int], int]:
        parts: Counter[CallId] = Counter()
        for op, size in self.made.values():
            around = self.memory.queries.calls_around(op) if op >= 0 else []
            if call in around:
                parts[around[max(around.index(call) - 1, 0)]] += size
        return parts, parts.pop(call, 0)

    def _is_open(self, call: CallId) -> bool:
        """Return whether a call was running when the op failed."""
        begin, end = (self.calls.number(name, call) for name in ("begin", "end"))
        return begin <= self.memory.failed < max(end, begin + 1)

    def _type(self, call: CallId) -> str:
        return str(self.memory.queries.trace.modules.raw("type", self.calls.number("module", call)))

    def _to_come(self, parts: dict[CallId, int]) -> list[str]:
        """Return the types of the modules beside those that have run, which have not."""
        modules = self.memory.queries.trace.modules
        ran = {self.calls.number("module", part) for part in parts}
        beside = {modules.number("parent", row) for row in ran}
        return [
            str(modules.raw("type", row))
            for row in range(len(modules))
            if row not in ran and modules.number("parent", row) in beside
        ]
