"""The ops of one recording: `Recorder` adds to them, folding shortens them, the trace is made of them."""

from dataclasses import dataclass

import torch

from devtrace.recording.columns.tensor_rows import Rows
from devtrace.recording.columns.thread_state import ThreadState


@dataclass(slots=True)
class Copied:
    """Data that crossed devices: from a tensor of one layout (`source`) to one of another (`target`).

    `times` counts this copy and those folded into it, `more` the bytes of the folded ones.
    """

    op: int
    source: int
    target: int
    pinned: bool
    non_blocking: bool
    times: int = 1
    more: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """An op that raised."""

    op: int
    type: str
    message: str
    around: list[int]  # in a thread, whose frames are gone when its error is raised again: its sites, innermost first


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait for a device that names no tensor of it: `torch.accelerator.synchronize()`."""

    op: int
    device: torch.device


class RecordedOps:
    """Ops of all threads, and the rows of their tensors."""

    def __init__(self) -> None:
        self.threads: list[ThreadState] = []
        self.rows = Rows()
        self.copies: list[Copied] = []
        self.failures: list[Failed] = []
        self.waits: list[Waited] = []
        self.nodes: dict[type, int] = {}
