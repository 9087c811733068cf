"""What a copy carried from one device to another. Rare beside other ops, so it is out of the hot path."""

from __future__ import annotations

from typing import Any

import torch

from devtrace.record import stamps
from devtrace.record.recorder import Copied, Recorder


def copied(recorder: Recorder, op: int, args: Any, kwargs: Any, out: Any) -> tuple[int, stamps.Past | None]:
    """Note what crossed devices in a copying op. Returns the row and the past of what a new tensor was copied from."""
    first, second = args[0], args[1] if len(args) > 1 else None
    if isinstance(first, list | tuple):
        for target, source in zip(first, second or (), strict=False):
            _carried(recorder, op, source, target, args, kwargs)
        return -1, None
    if isinstance(second, torch.Tensor):
        _carried(recorder, op, second, first, args, kwargs)
        return -1, None
    _carried(recorder, op, first, out, args, kwargs)
    stamp = stamps.get(first)
    return recorder.meet(first), stamps.shorten((stamp[4], first.device, stamp[5]))


def _carried(recorder: Recorder, op: int, source: Any, target: Any, args: Any, kwargs: Any) -> None:
    if source.device == target.device:
        return
    non_blocking = bool((kwargs or {}).get("non_blocking") or (len(args) > 2 and args[2]))
    row = Copied(op, recorder.layout(source), recorder.layout(target), _pinned(source), non_blocking)
    recorder.copies.append(row)


def _pinned(tensor: Any) -> bool:
    try:
        return bool(tensor.device.type == "cpu" and tensor.is_pinned())
    except Exception:  # noqa: BLE001 (a build with no device to pin memory for)
        return False
