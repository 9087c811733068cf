"""What a copy carried from one device to another. Rare beside other ops, so it is out of the hot path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from devtrace.record import stamps

if TYPE_CHECKING:
    from devtrace.record.recorder import Recorder


@dataclass(slots=True)
class Copied:
    """Data that crossed devices: from a tensor of one layout to one of another. `times` and `more` count what was
    folded into it, and the bytes of that.
    """

    op: int
    source: int
    target: int
    pinned: bool
    non_blocking: bool
    times: int = 1
    more: int = 0


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
    _, _, birth, past = stamps.get(first)
    return recorder.rows.meet(first), stamps.shorten((birth, first.device, past))


def _carried(recorder: Recorder, op: int, source: Any, target: Any, args: Any, kwargs: Any) -> None:
    if source.device == target.device:
        return
    non_blocking = bool((kwargs or {}).get("non_blocking") or (len(args) > 2 and args[2]))
    layouts = recorder.rows.layout(source)[2], recorder.rows.layout(target)[2]
    recorder.copies.append(Copied(op, *layouts, _pinned(source), non_blocking))


def _pinned(tensor: Any) -> bool:
    try:
        return bool(tensor.device.type == "cpu" and tensor.is_pinned())
    except Exception:  # noqa: BLE001 (a build with no device to pin memory for)
        return False
