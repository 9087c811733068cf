"""TorchScript beside our `torch.device`: annotations from before the simulation name torch's own class of devices."""

from collections.abc import Callable
from typing import Any

import torch

from devtrace.runtime.patches import Patches


def install(patches: Patches) -> None:
    """Let torch.jit.script read both as a device."""
    annotations = torch.jit.annotations
    read: Callable[..., Any] = annotations.try_ann_to_type

    def read_either(annotation: Any, *rest: Any, **more: Any) -> Any:
        return read(torch.device if annotation is torch._C.device else annotation, *rest, **more)

    patches.set(annotations, "try_ann_to_type", read_either)
