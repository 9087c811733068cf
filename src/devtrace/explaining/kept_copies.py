"""Births and copies known from hooks: registration, optimizer state, deep copies.

State that an optimizer made before the model moved stayed where the parameters were; so did the deep copy of an EMA.
The hooks noted the line, and the parameter's later move shows the order.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from devtrace.diagnosis.evidence.access_paths import Walk
from devtrace.explaining.reading.move_history import BEFORE_ALL
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.returned_calls import run_around
from devtrace.explaining.reading.values import Activation, ReadOp
from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.operator_info import COMPUTE
from devtrace.recording.columns.process_history import history
from devtrace.recording.context.module_tree import is_module
from devtrace.runtime.quiet import device_of, dtype_of, is_tensor, shape_of
from devtrace.source import parsing
from devtrace.source.matching import called_name, calls_in, owner_of
from devtrace.source.object_walk import registered, states_of


def add_attached(reader: Reader, walk: Walk) -> None:
    """Note the registration of each parameter and buffer that has not moved since."""
    for tensor in walk.tensors:
        epoch, _, birth, past = stamps.get(tensor)
        if birth < 0 or past is not None or epoch == reader.rows.epoch:  # unseen, moved since, or read already
            continue
        references = [step for step in walk.references[id(tensor)] if step.kind in ("parameter", "buffer")]
        registrations = (history.modules.registered(step.owner, step.key) for step in references)
        registration = next((event for event in registrations if event is not None), None)
        if registration is not None:
            row, layout = next(reader.rows.next), reader.rows.layout(tensor)[2]
            op = ReadOp("attached", COMPUTE, birth, [], row, layout, BEFORE_ALL, tick=registration.tick, is_seen=True)
            reader.ops.append(op)
            reader.stamp(tensor, row)


def add_states(reader: Reader, optimizers: Iterable[Any]) -> None:
    """Note optimizer state that was made where its parameter was before it moved."""
    for optimizer in optimizers:
        for parameter, _, value in states_of(optimizer):
            if is_tensor(parameter) and shape_of(value) == shape_of(parameter) and shape_of(value):
                _add_copy_before_move(reader, value, parameter, "aten.zeros_like")


def add_deep_copies(reader: Reader, tensors: Iterable[Any], modules: list[Any]) -> None:
    """Note which tensors are deep copies of ones that have moved since."""
    for tensor in tensors:
        for source in _sources_of_deep_copy(reader, tensor, modules):
            if _add_copy_before_move(reader, tensor, source, "aten.clone"):
                break


def _add_copy_before_move(reader: Reader, tensor: Any, source: Any, name: str) -> bool:
    """Note that a tensor is a copy of `source`, taken before `source` moved away; return whether that can be."""
    site, device, dtype = stamps.get(tensor)[2], str(device_of(tensor)), dtype_of(tensor) if reader.of_dtypes else None
    former = reader.pasts.formers.get(reader.live(source).row)
    has_moved = str(device_of(source)) != device or dtype not in (None, dtype_of(source))
    if site < 0 or former is None or not former.was(device, dtype) or not has_moved:
        return False
    op = reader.pasts.copy_before(name, former, site, reader.rows.layout(tensor)[2])
    reader.rename(reader.rows.row_of(tensor), op.row)
    reader.stamp(tensor, op.row)
    return True


def _sources_of_deep_copy(reader: Reader, tensor: Any, modules: list[Any]) -> Iterator[Any]:
    """Yield the tensors that `copy.deepcopy(model)` on the tensor's creation line would have copied it from."""
    for original in _deep_copied_modules(reader, stamps.get(tensor)[2]):
        copies = [module for module in modules if type(module) is type(original) and module is not original]
        paths = [path for module in copies for path, inner in registered(module) if stamps.share_storage(inner, tensor)]
        tensors_by_path = dict(registered(original))
        yield from (tensors_by_path[path] for path in paths if path in tensors_by_path)


def _deep_copied_modules(reader: Reader, site: int) -> Iterator[Any]:
    """Yield the modules that the line of a site makes deep copies of."""
    if site < 0:
        return
    position = sites.position(site)
    source, node = parsing.node_of(position.code, position.instruction)
    global_names = next((run.globals for run in reader.user_activations() if run.source is source), {})
    for call in calls_in(source.statement(node)):
        if called_name(call) == "deepcopy" and call.args:
            run = run_around(reader, call, Activation.of_file(source, global_names))
            module = reader.known(owner_of(call.args[0]) or call.args[0], run)  # `model` of `model.state_dict()`
            if is_module(module):
                yield module
