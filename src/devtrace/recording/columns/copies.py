"""Notes the data that a copy carried from one device to another: rare, and so not in the hot path."""

from typing import Any, Final

import torch

from devtrace.recording.columns import stamps
from devtrace.recording.columns.chunk import WIDTH
from devtrace.recording.columns.process_history import Past
from devtrace.recording.columns.recorded_ops import Copied, RecordedOps
from devtrace.recording.columns.thread_state import ThreadState
from devtrace.runtime.mode_stack import of_ours_only
from devtrace.runtime.quiet import Quiet, device_of, dtype_of, is_tensor, shape_of

_HOST: Final = torch.device("cpu")
_NO_COPY: Final = ("cpu", "meta")


def note_copy(recorded: RecordedOps, op: int, args: Any, kwargs: Any, out: Any) -> tuple[int, Past | None]:
    """Note the data that crossed devices in a copy. Return row and past of the source if the op made a tensor."""
    first, second = args[0], args[1] if len(args) > 1 else None
    if isinstance(first, list | tuple):
        for target, source in zip(first, second or (), strict=False):
            _note_crossing(recorded, op, source, target, args, kwargs)
        return -1, None
    if is_tensor(second):
        _note_crossing(recorded, op, second, first, args, kwargs)
        return -1, None
    _note_crossing(recorded, op, first, out, args, kwargs)
    _, _, birth, past = stamps.get(first)
    return recorded.rows.row_for_input(first), stamps.shorten((birth, device_of(first), dtype_of(first), past))


def note_lift(recorded: RecordedOps, op: int, tensor: Any) -> None:
    """Note that torch made a tensor of a list or numbers on a device: it copied them there below any mode."""
    rows, device = recorded.rows, device_of(tensor)
    if device.type not in _NO_COPY:
        source_layout = rows.layout_of(shape_of(tensor), dtype_of(tensor), _HOST)[2]
        recorded.copies.append(Copied(op, -1, source_layout, rows.layout(tensor)[2], False, False))


def note_index(recorded: RecordedOps, state: ThreadState, lifting_ops: range, args: Any, rows: list[int]) -> bool:
    """Note the copy of the list in `x[[0, 1]]`, a tensor by `lifting_ops`, to `x`'s device; say if it is a mask.

    torch makes the index on that device. Its C++ takes a simulated `x` for one on the CPU, and makes the index there.
    """
    device = device_of(args[0])
    if device.type in _NO_COPY:
        return False
    has_mask = False
    index_rows = set(rows[1 : 1 + sum(is_tensor(index) for index in args[1])])
    for op in lifting_ops:
        head_begin = len(state.heads) + (op - state.op) * WIDTH
        row, layout = state.heads[head_begin + WIDTH - 2 : head_begin + WIDTH] if head_begin >= 0 else (-1, -1)
        if row in index_rows and layout >= 0:
            shape, dtype, made_on = recorded.rows.layouts[layout]
            if made_on == _HOST:  # else torch made it on the device
                target_layout = state.heads[head_begin + WIDTH - 1] = recorded.rows.layout_of(shape, dtype, device)[2]
                recorded.copies.append(Copied(op, -1, layout, target_layout, False, False))
                has_mask = has_mask or dtype == torch.bool
    return has_mask


def _note_crossing(recorded: RecordedOps, op: int, source: Any, target: Any, args: Any, kwargs: Any) -> None:
    """Note a copy if its source and its target are on different devices."""
    if device_of(source) == device_of(target):
        return
    non_blocking = bool((kwargs or {}).get("non_blocking") or (len(args) > 2 and args[2]))
    rows = recorded.rows
    both_layouts = rows.layout(source)[2], rows.layout(target)[2]
    recorded.copies.append(Copied(op, rows.row_for_input(source), *both_layouts, is_pinned(source), non_blocking))


def is_pinned(tensor: Any) -> bool:
    """Return whether a tensor lies in pinned memory of the host. To ask is an op, which only our own modes may see."""
    try:
        with Quiet(), of_ours_only():
            return bool(device_of(tensor).type == "cpu" and torch._C.TensorBase.is_pinned(tensor))
    except Exception:  # noqa: BLE001 (a build with no device to pin memory for)
        return False
