"""The first thread through the recorder: how many ops ran on each device."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class CountOps(TorchDispatchMode):
    """Counts each op under the device of its first output that is a tensor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch annotates no method of a mode
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        outputs = result if isinstance(result, list | tuple) else (result,)
        device = next((str(output.device) for output in outputs if isinstance(output, torch.Tensor)), "host")
        self.counts[device] += 1
        return result
