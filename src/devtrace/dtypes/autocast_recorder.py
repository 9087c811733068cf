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
    """A region of `torch.autocast`: the ops of a thread from `begin` to `end` (-1: it has not been left)."""

    begin: int
    device: str
    dtype: str
    enabled: bool
    site: int
    end: int = -1
    exit_site: int = sites.NOWHERE


class AutocastObserver(Observer):
    """Notes the regions of autocast that each thread enters, and where it leaves them."""

    def __init__(self, recorder: RecordedOps, asked: Mapping[str, Any]) -> None:
        super().__init__(recorder, asked)
        self._regions: list[RecordedRegion] = []
        self._regions_around: dict[int, list[RecordedRegion | None]] = defaultdict(list)

    def install(self, patches: Patches, stack: ExitStack) -> None:
        for kind in KINDS:  # the program may be in regions as the recording begins
            if torch.is_autocast_enabled(kind):
                self._push(self._begin(kind, 0, sites.NOWHERE))
        patches.wrap(torch.autocast, "__enter__", self._enter)
        patches.wrap(torch.autocast, "__exit__", self._exit)

    def forget_ops(self, thread: int, numbers: Array, last: int) -> None:
        """Forget the regions that have been left and all of whose ops are gone."""
        self._regions[:] = [
            region
            for region in self._regions
            if region.begin >> THREAD_SHIFT != thread
            or region.end < 0
            or has_ops(region.begin & NUMBERS, region.end & NUMBERS, numbers, last)
        ]

    def sites(self) -> Iterator[int]:
        for region in self._regions:
            yield from (region.site, region.exit_site)

    def add_rows(self, assembly: Assembly, rows: Mapping[int, int]) -> None:
        """Add the regions in which an op ran that is still there."""
        threads, boundary = self.recorder.threads, assembly.merged.numbering.boundary
        for region in self._regions:
            thread = region.begin >> THREAD_SHIFT
            begin = boundary(thread, region.begin & NUMBERS)
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
                    left=rows.get(region.exit_site, -1),
                )

    def _enter(self, original: Call, manager: Any) -> Any:
        result = original(manager)
        self._push(self._if_recording(lambda state, frame: self._begin(manager.device, state.op, state.here(frame))))
        return result

    def _exit(self, original: Call, manager: Any, *raised: Any) -> Any:
        regions = self._regions_around[threading.get_ident()]
        region = regions.pop() if regions else None
        if region is not None:
            self._if_recording(lambda state, frame: self._end(region, state.op, state.here(frame)))
        return original(manager, *raised)

    def _if_recording(self, note: Callable[[ThreadState, FrameType], RecordedRegion | None]) -> RecordedRegion | None:
        state = self.recorder.states.get(threading.get_ident())
        with self.recorder.faults:
            is_recording = state is not None and self.recorder.active and not is_compiling()
            return note(state, sys._getframe(3)) if is_recording and state is not None else None
        return None

    def _push(self, region: RecordedRegion | None) -> None:
        self._regions_around[threading.get_ident()].append(region)
        if region is not None:
            self._regions.append(region)

    def _begin(self, kind: str, op: int, site: int) -> RecordedRegion | None:
        """Return a region, but no disabled one outside any other: activation checkpointing enters one to recompute."""
        enabled = torch.is_autocast_enabled(kind)
        regions = self._regions_around[threading.get_ident()]
        if not enabled and not any(region is not None and region.device == kind for region in regions):
            return None
        dtype = str(torch.get_autocast_dtype(kind)).removeprefix("torch.")
        return RecordedRegion(op, kind, dtype, enabled, site)

    def _end(self, region: RecordedRegion, op: int, site: int) -> RecordedRegion:
        region.end, region.exit_site = op, site
        if op == region.begin and self._regions[-1] is region:
            self._regions.pop()  # no op was recorded in it
        return region
