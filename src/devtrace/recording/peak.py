"""The most that a block has on a device, by torch's own counts: `peak="cuda:0 <= 20GB"`."""

from dataclasses import dataclass

import torch

from devtrace.runtime.device_spec import bound


@dataclass(frozen=True, slots=True)
class Peak:
    """A bound that begins with what the device has: torch's own peak is reset."""

    device: str
    most: int

    @classmethod
    def of(cls, text: object) -> "Peak":
        device, most = bound(text)
        torch.cuda.reset_peak_memory_stats(device)
        return cls(device, most)

    def beyond(self) -> int:
        """Return the bytes at the highest, where they are more than the bound; else 0."""
        highest = torch.cuda.max_memory_allocated(self.device)
        return highest if highest > self.most else 0
