"""Notes where `torch.autocast` is entered and left: an op under it is cast, and no op says so.

Its `__enter__` and `__exit__` are replaced while recording, those of `torch.cuda.amp.autocast` and of the decorator
come by them. No op asks anything: which ones ran in a region is found at the end, by their numbers.
"""

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import torch
from torch.compiler import is_compiling

from devtrace.recording.columns import sites
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.tensor_rows import Array
from devtrace.recording.columns.thread_state import NUMBERS, THREAD_SHIFT, ThreadState
from devtrace.recording.finish.assemble import Assembly
from devtrace.recording.finish.observer import Observer
from devtrace.recording.folding.fold import has_ops
from devtrace.runtime.patches import Call, Patches

KINDS: Final = ("cuda", "cpu")
"""Kinds of devices for which a recording may begin within a region."""


@dataclass(slots=True)
class RecordedRegion:
    """A region of `torch.autocast`: the ops of a thread from `op` to `end` (-1: it has not been left)."""

    op: int
    device: str
    dtype: str
    enabled: bool
    site: int
    end: int = -1
    left: int = sites.NOWHERE


class AutocastObserver(Observer):
    """Regions that each thread is in, and all that were."""

    def __init__(self, recorder: RecordedOps, asked: Mapping[str, Any]) -> None:
        super().__init__(recorder, asked)
        self._regions: list[RecordedRegion] = []
        self._open: dict[int, list[RecordedRegion | None]] = defaultdict(list)

    def install(self, patches: Patches, stack: ExitStack) -> None:
        for kind in KINDS:  # the program may be in regions as the recording begins
            if torch.is_autocast_enabled(kind):
                self._add(self._region(kind, 0, sites.NOWHERE))
        patches.wrap(torch.autocast, "__enter__", self._enter)
        patches.wrap(torch.autocast, "__exit__", self._exit)

    def forget_ops(self, thread: int, numbers: Array, last: int) -> None:
        """Forget the regions that have been left and all of whose ops are gone."""
        self._regions[:] = [
            each
            for each in self._regions
            if each.op >> THREAD_SHIFT != thread
            or each.end < 0
            or has_ops(each.op & NUMBERS, each.end & NUMBERS, numbers, last)
        ]

    def sites(self) -> Iterator[int]:
        for region in self._regions:
            yield from (region.site, region.left)

    def add_rows(self, assembly: Assembly, rows: Mapping[int, int]) -> None:
        """Add the regions in which an op ran that is still there."""
        threads, boundary = self.recorder.threads, assembly.merged.numbering.boundary
        for region in self._regions:
            thread = region.op >> THREAD_SHIFT
            begin = boundary(thread, region.op & NUMBERS)
            end = boundary(thread, (threads[thread].op if region.end < 0 else region.end) & NUMBERS)
            if end > begin:
                assembly.builder.append(
                    "autocasts",
                    thread=thread,
                    begin=begin,
                    end=end,
                    device=region.device,
                    dtype=region.dtype,
                    enabled=int(region.enabled),
                    site=rows.get(region.site, -1),
                    left=rows.get(region.left, -1),
                )

    def _enter(self, own: Call, manager: Any) -> Any:
        entered = own(manager)
        self._add(self._note(lambda state, frame: self._region(manager.device, state.op, state.here(frame))))
        return entered

    def _exit(self, own: Call, manager: Any, *raised: Any) -> Any:
        around = self._open[threading.get_ident()]
        region = around.pop() if around else None
        if region is not None:
            self._note(lambda state, frame: self._end(region, state.op, state.here(frame)))
        return own(manager, *raised)

    def _note(self, note: Callable[[ThreadState, FrameType], RecordedRegion | None]) -> RecordedRegion | None:
        state = self.recorder.states.get(threading.get_ident())
        with self.recorder.faults:
            is_seen = state is not None and self.recorder.active and not is_compiling()
            return note(state, sys._getframe(3)) if is_seen and state is not None else None
        return None

    def _add(self, region: RecordedRegion | None) -> None:
        self._open[threading.get_ident()].append(region)
        if region is not None:
            self._regions.append(region)

    def _region(self, kind: str, op: int, site: int) -> RecordedRegion | None:
        """Ignore a disabled region outside any other: activation checkpointing enters one when it recomputes."""
        enabled = torch.is_autocast_enabled(kind)
        around = self._open[threading.get_ident()]
        if not enabled and not any(region is not None and region.device == kind for region in around):
            return None
        dtype = str(torch.get_autocast_dtype(kind)).removeprefix("torch.")
        return RecordedRegion(op, kind, dtype, enabled, site)

    def _end(self, region: RecordedRegion, op: int, site: int) -> RecordedRegion:
        region.end, region.left = op, site
        if op == region.op and self._regions[-1] is region:
            self._regions.pop()  # no op was recorded in it
        return region
