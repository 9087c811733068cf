"""The odd tensor of a failing op, found by provenance and majority, never by torch's wording.

torch compares arguments in the order of its schema and names the first that differs, which is often the right one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import HOST, META, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.slugs import Refused
from devtrace.source.vocabulary import changes_itself
from devtrace.trace.ids import OpId, TensorId
from devtrace.trace.op_kinds import INDEXING, RECURRENT
from devtrace.words.text_format import short_op_name

DeviceOf = Callable[[TensorId], str]
RECENT: Final = 200
"""How many of a thread's last ops show where it works."""


@dataclass(frozen=True)
class Mismatch:
    """An op that got tensors of several devices, or dtypes: one tensor is odd, the others are as expected.

    `of` tells what was refused: inputs of an op, a gradient, the copy of a tensor without data, or a dtype as such.
    """

    op: OpId
    odd_tensor: TensorId
    odd_trait: str
    expected_trait: str
    others_of_odd_trait: tuple[TensorId, ...] = ()
    words: Site | None = None  # what says that the CPU is meant, where the odd tensor is on an accelerator
    is_undecided: bool = False  # True if nothing says which device is meant
    is_meant: bool = False  # True if the program's variables name the expected one of two accelerators
    of: Literal["inputs", "gradient", "copy"] | Refused = "inputs"


def find_mismatch(queries: TraceQueries, op: OpId) -> Mismatch | None:
    """Return the mismatch of an op's inputs; None if all are on one device or the mix is legal."""
    tensors = combined(queries, op)
    devices = list(dict.fromkeys(queries.device(tensor) for tensor in tensors))
    if len(devices) < 2:
        return None
    always_odd = next((device for device in (META, HOST) if device in devices), "")
    return of_inputs(queries, op, tensors, always_odd or _odd_accelerator(queries, op, tensors, devices))


def turned(queries: TraceQueries, mismatch: Mismatch, words: Site | None) -> Mismatch:
    """Return a mismatch in which the expected device is the odd one."""
    tensors = combined(queries, mismatch.op)
    return replace(of_inputs(queries, mismatch.op, tensors, mismatch.expected_trait), words=words)


def of_inputs(queries: TraceQueries, op: OpId, rows: list[TensorId], odd: str, expected: str = "") -> Mismatch:
    """Return the mismatch whose odd tensor is the first input of the trait `odd` that is no bias, else the bias."""
    of_odd_trait = [row for row in rows if queries.trait(row) == odd]
    wrong = [row for row in rows if queries.trait(row) != expected] if expected else of_odd_trait
    expected = expected or queries.trait(next(row for row in rows if row not in of_odd_trait))
    names = ((row, str(queries.trace.tensors.raw("name", row))) for row in of_odd_trait)
    odd_tensor = next((row for row, name in names if not name.endswith(".bias")), of_odd_trait[0])
    return Mismatch(op, odd_tensor, odd, expected, tuple(row for row in wrong if row != odd_tensor))


def is_owned(queries: TraceQueries, tensor: TensorId) -> bool:
    return queries.is_of_a_module(queries.base(tensor))  # a view of a weight is owned, too


def combined(queries: TraceQueries, op: OpId, device_of: DeviceOf | None = None) -> list[TensorId]:
    """Return the tensors that an op may not mix; if its inputs agree, also the intermediate results of its line.

    `device_of` tells where tensors would be after a fix.
    """
    tensors = queries.inputs(op)
    if not queries.op_name(op).startswith("aten.") and len(queries.devices_of(*tensors)) == 1:
        tensors = [*tensors, *results_of_the_line(queries, op)]
    return _without_legal_mixes(queries, op, list(dict.fromkeys(tensors)), device_of or queries.device)


def results_of_the_line(queries: TraceQueries, op: OpId) -> list[TensorId]:
    """Return the failing statement's intermediate results: both tensors of `(w * 2).backward(torch.ones(3))`."""
    unused_results, used = list[TensorId](), set[TensorId]()
    for earlier_op in map(OpId, range(op - 1, -1, -1)):
        if not queries.are_of_one_statement(earlier_op, op):
            break
        unused_results += [tensor for tensor in queries.outputs(earlier_op) if tensor not in used]
        used.update(queries.inputs(earlier_op))
    return unused_results[::-1]


def _without_legal_mixes(queries: TraceQueries, op: OpId, rows: list[TensorId], device_of: DeviceOf) -> list[TensorId]:
    """Return the inputs without legal mixes: CPU tensors of one number, and CPU indexes."""
    name = queries.op_name(op)
    rows = without_indexes(name, rows, device_of)
    if name in RECURRENT:  # batch sizes are whole numbers on the CPU
        tensors = queries.trace.tensors
        rows = [row for row in rows if device_of(row) != HOST or "int" not in str(tensors.raw("dtype", row))]
    without_cpu_scalars = [row for row in rows if device_of(row) != HOST or queries.dims[row] != 0]
    return without_cpu_scalars if len(set(map(device_of, without_cpu_scalars))) > 1 else rows


def without_indexes(name: str, rows: list[TensorId], device_of: DeviceOf) -> list[TensorId]:
    """Return `x` and `values` of `x[indexes] = values`: the inputs without CPU indexes into a tensor of a device."""
    if not name.startswith(INDEXING) or not rows or device_of(rows[0]) == HOST:
        return rows
    values = [rows[-1]] if "put" in name and len(rows) > 1 else []
    return [row for row in rows if row in (rows[0], *values) or device_of(row) != HOST]


def _odd_accelerator(queries: TraceQueries, op: OpId, rows: list[TensorId], devices: list[str]) -> str:
    """Return the accelerator that the computation is not on."""
    return (
        _not_of_the_thread(queries, op, devices)
        or _of_inputs_that_were_copied(queries, op, rows, devices)
        or not_of_the_module(queries, op, devices)
        or without_gradients(queries, rows, devices)
        or rarest_of_recent_ops(queries, op, devices)
        or devices[-1]
    )


def _not_of_the_thread(queries: TraceQueries, op: OpId, devices: list[str]) -> str:
    """Return the device on which a replica's thread has not worked."""
    ops = queries.trace.ops
    thread = ops.number("thread", op)
    if thread <= 0:
        return ""
    return _rarest_of_ops(queries, np.flatnonzero(ops.ints("thread")[:op] == thread)[-RECENT:].tolist(), devices)


def _of_inputs_that_were_copied(queries: TraceQueries, op: OpId, rows: list[TensorId], devices: list[str]) -> str:
    """Return the device that a copy left; for a tensor that is written into, that of the values.

    `out[rows] = expert(x.to(other))` gathers what was sent to other devices. Where the weights were sent too the
    program has moved: then it is an optimizer's state that stayed.
    """
    earlier_devices: dict[str, set[str]] = {device: set() for device in devices}  # without those of weights
    for row in rows:
        sources = queries.ancestors(row, past_modules=False)
        earlier_devices[queries.device(row)] |= set(map(queries.device, sources))
    left = left_behind({device: earlier - {device} for device, earlier in earlier_devices.items()})
    target = written_into(queries, op)
    if not left or target is None or queries.device(target) != left:
        return left
    made_of = (past for row in rows if row != target for past in queries.ancestors(row, past_modules=False))
    weights = [row for row in made_of if queries.is_of_a_module(row) and queries.device(row) != left]
    weights_moved = any(queries.device(past) == left for weight in weights for past in queries.ancestors(weight))
    return left if weights_moved or not weights else next(device for device in devices if device != left)


def written_into(queries: TraceQueries, op: OpId) -> TensorId | None:
    """Return the tensor that an op changes in place; None if it makes a new one."""
    inputs = queries.inputs(op)
    return inputs[0] if inputs and changes_itself(short_op_name(queries.op_name(op))) else None


def left_behind(earlier_devices: Mapping[str, set[str]]) -> str:
    """Return "cpu" for `{"cuda:0": {"cpu"}, "cpu": set()}`: one input was copied from there, the other stayed.

    The computation has moved to the copy's device, then; or to the dtype of a cast.
    """
    left = [device for device in earlier_devices if device in set().union(*earlier_devices.values())]
    stayed = [device for device in left if earlier_devices[device].isdisjoint(earlier_devices)]
    return stayed[0] if len(stayed) == 1 else ""


def not_of_the_module(queries: TraceQueries, op: OpId, devices: list[str]) -> str:
    """Return the device that has the fewest parameters which the innermost running module with any has used."""
    for call in map(queries.trace.calls.__getitem__, queries.calls_around(op)):
        end = min(call.end if call.end >= 0 else op, op)  # -1: the call still runs
        uses = Counter(
            queries.trait(tensor)
            for earlier_op in map(OpId, range(max(call.begin, end - RECENT), end))
            for tensor in queries.inputs(earlier_op)
            if queries.is_of_a_module(tensor)
        )
        if uses:
            return _rarest(uses, devices)
    return ""


def without_gradients(queries: TraceQueries, rows: list[TensorId], devices: list[str]) -> str:
    """Return the device of the input without a gradient: a teacher's scores come to the student."""
    with_gradients = {queries.trait(row) for row in rows if _is_trained(queries, row)}
    others = [device for device in devices if device not in with_gradients]
    return others[0] if len(others) == 1 else ""


def _is_trained(queries: TraceQueries, tensor: TensorId) -> bool:
    """Return whether a gradient flows from a tensor back to a parameter."""
    reached = [tensor]  # grows while the loop goes through it
    for source in reached:
        if queries.trace.tensors.raw("role", source) == "parameter":
            return True
        op = queries.producer(source)
        if op >= 0 and queries.trace.ops.number("grad", op) and len(reached) < RECENT:
            reached += [parent for parent in queries.inputs(op) if parent not in reached]
    return False


def rarest_of_recent_ops(queries: TraceQueries, op: OpId, devices: list[str]) -> str:
    """Return the device on which the fewest of the last ops computed; empty if all devices had equally many."""
    return _rarest_of_ops(queries, map(OpId, range(max(0, op - RECENT), op)), devices)


def _rarest_of_ops(queries: TraceQueries, ops: Iterable[OpId], devices: list[str]) -> str:
    """Return the device on which the fewest ops computed."""
    op_devices, computes = queries.trace.ops.ints("device"), queries.is_kind("compute")
    uses = Counter(queries.device_names[op_devices[op]] for op in ops if op_devices[op] >= 0 and computes[op])
    return _rarest(uses, devices)


def _rarest(uses: Counter[str], devices: list[str]) -> str:
    """Return the device with the fewest uses; empty if all have equally many."""
    ranked = sorted(devices, key=lambda device: uses[device])
    return ranked[0] if uses[ranked[0]] < uses[ranked[-1]] else ""
