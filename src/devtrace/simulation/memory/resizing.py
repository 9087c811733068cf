"""Storages that get another size: FSDP frees a layer's parameters by `resize_(0)` and takes it again."""

from typing import Any

import torch

from devtrace.simulation.storage_tags import TAG, tag_of

_resize = torch.UntypedStorage.resize_


def resize(mode: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer `x.resize_()`, which may take more memory."""
    out = func(*args, **kwargs)
    tag_of(args[0]).resize(args[0].untyped_storage().nbytes())
    return out


BY_NAME = dict.fromkeys(("aten::resize_", "aten::resize_as_"), resize)


def resize_(self: torch.UntypedStorage, size: int) -> Any:
    """`UntypedStorage.resize_`."""
    out = _resize(self, size)
    getattr(self, TAG).resize(self.nbytes())
    return out
