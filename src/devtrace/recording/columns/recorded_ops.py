"""What a recording holds, apart from what fills it: what folding shortens and what the trace is made of."""

from __future__ import annotations

from dataclasses import dataclass

from devtrace.recording.columns.tensor_rows import Rows
from devtrace.recording.columns.thread_state import ThreadState


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


@dataclass(frozen=True, slots=True)
class Failed:
    """An op that raised."""

    op: int
    type: str
    message: str
    around: list[int]  # in a thread, whose frames are gone when its error is raised again: the sites, innermost first


class RecordedOps:
    """The ops of all threads of one recording, and the rows of their tensors."""

    def __init__(self) -> None:
        self.threads: list[ThreadState] = []
        self.rows = Rows()
        self.copies: list[Copied] = []
        self.failures: list[Failed] = []
        self.nodes: dict[type, int] = {}
