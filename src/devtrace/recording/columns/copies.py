"""Notes the data that a copy carried from one device to another: rare, and so not in the hot path."""

from __future__ import annotations

from typing import Any

import torch

from devtrace.recording.columns import stamps
from devtrace.recording.columns.process_history import Past
from devtrace.recording.columns.recorded_ops import Copied, RecordedOps


def copied(recorded: RecordedOps, op: int, args: Any, kwargs: Any, out: Any) -> tuple[int, Past | None]:
    """Note the data that crossed devices in a copy. Return the row and the past of the source of a new tensor."""
    first, second = args[0], args[1] if len(args) > 1 else None
    if isinstance(first, list | tuple):
        for target, source in zip(first, second or (), strict=False):
            _carried(recorded, op, source, target, args, kwargs)
        return -1, None
    if isinstance(second, torch.Tensor):
        _carried(recorded, op, second, first, args, kwargs)
        return -1, None
    _carried(recorded, op, first, out, args, kwargs)
    _, _, birth, past = stamps.get(first)
    return recorded.rows.row_for_input(first), stamps.shorten((birth, first.device, past))


def _carried(recorded: RecordedOps, op: int, source: Any, target: Any, args: Any, kwargs: Any) -> None:
    if source.device == target.device:
        return
    non_blocking = bool((kwargs or {}).get("non_blocking") or (len(args) > 2 and args[2]))
    layouts = recorded.rows.layout(source)[2], recorded.rows.layout(target)[2]
    recorded.copies.append(Copied(op, *layouts, _pinned(source), non_blocking))


def _pinned(tensor: Any) -> bool:
    try:
        return bool(tensor.device.type == "cpu" and tensor.is_pinned())
    except Exception:  # noqa: BLE001 (a build with no device to pin memory for)
        return False
