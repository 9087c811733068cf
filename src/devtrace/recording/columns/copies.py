"""Notes the data that a copy carried from one device to another: rare, and so not in the hot path."""

from __future__ import annotations

from typing import Any

import torch

from devtrace.recording.columns import stamps
from devtrace.recording.columns.process_history import Past
from devtrace.recording.columns.recorded_ops import Copied, RecordedOps
from devtrace.runtime.mode_stack import of_ours_only
from devtrace.runtime.quiet import Quiet, device_of, is_tensor


def copied(recorded: RecordedOps, op: int, args: Any, kwargs: Any, out: Any) -> tuple[int, Past | None]:
    """Note the data that crossed devices in a copy. Return the row and the past of the source of a new tensor."""
    first, second = args[0], args[1] if len(args) > 1 else None
    if isinstance(first, list | tuple):
        for target, source in zip(first, second or (), strict=False):
            _carried(recorded, op, source, target, args, kwargs)
        return -1, None
    if is_tensor(second):
        _carried(recorded, op, second, first, args, kwargs)
        return -1, None
    _carried(recorded, op, first, out, args, kwargs)
    _, _, birth, past = stamps.get(first)
    return recorded.rows.row_for_input(first), stamps.shorten((birth, device_of(first), past))


def _carried(recorded: RecordedOps, op: int, source: Any, target: Any, args: Any, kwargs: Any) -> None:
    if device_of(source) == device_of(target):
        return
    non_blocking = bool((kwargs or {}).get("non_blocking") or (len(args) > 2 and args[2]))
    layouts = recorded.rows.layout(source)[2], recorded.rows.layout(target)[2]
    recorded.copies.append(Copied(op, *layouts, pinned(source), non_blocking))


def pinned(tensor: Any) -> bool:
    """Return whether a tensor lies in pinned memory of the host. To ask is an op, which only our own modes may see."""
    try:
        with Quiet(), of_ours_only():
            return bool(device_of(tensor).type == "cpu" and torch._C.TensorBase.is_pinned(tensor))
    except Exception:  # noqa: BLE001 (a build with no device to pin memory for)
        return False
