"""Makes rows of what the hooks noted of a recording's modules: where each was attached, and each move.

Happenings from before the recording have negative ops: -1 is the last of them, lower ones are earlier.
"""

from collections.abc import Callable, Iterator
from typing import Any

from devtrace.recording.columns.module_notes import Happening, unpack_happening
from devtrace.recording.columns.process_history import UNCOUNTED, MovedModule
from devtrace.recording.columns.process_history import history as process
from devtrace.recording.columns.thread_state import NUMBERS, THREAD_SHIFT
from devtrace.recording.context.module_tree import count_registered
from devtrace.recording.context.modules import KnownModule, Modules
from devtrace.recording.finish.merge import OpNumbering
from devtrace.trace.builder import TraceBuilder


class ModuleHistory:
    """Happenings that concern the modules of one recording."""

    def __init__(self, modules: Modules, first_tick: int) -> None:
        self._first_tick = first_tick
        self._modules = modules
        self._add_moved_modules()
        self.attached = [_attachment(known) for known in modules.known]
        # With their rows and counts now: Python may collect a module while the tables are made.
        rows = [(moved, modules.row_of_reference(moved.module)) for moved in list(process.moves)]
        self.moves = [(moved, row, _tensor_count(moved)) for moved, row in rows if row >= 0]
        earlier = sorted(at.tick for at in self._happenings() if at.tick < first_tick)
        self._rank = {tick: index - len(earlier) for index, tick in enumerate(earlier)}

    def _add_moved_modules(self) -> None:
        """Add modules that were moved while recording: no call may have reached them, but the trace has their moves."""
        for moved in list(process.moves):
            module = moved.module()
            if module is not None and moved.at.tick >= self._first_tick and self._modules.row_of(module) < 0:
                self._modules.take(module, moved.at.site)

    def _happenings(self) -> Iterator[Happening]:
        yield from (at for at in self.attached if at is not None)
        yield from (moved.at for moved, _, _ in self.moves)

    def sites(self) -> Iterator[int]:
        """Yield the process's ids of all sites that the rows will name."""
        yield from (at.site for at in self._happenings())
        yield from (known.site for known in self._modules.known)

    def add_modules(self, builder: TraceBuilder, paths: list[str], sites: dict[int, int], ops: OpNumbering) -> None:
        known, text = self._modules.known, builder.text
        texts = [(text(path), text(module.type)) for path, module in zip(paths, known, strict=True)]
        builder.columns(
            "modules",
            {
                "path": [path for path, _ in texts],
                "type": [kind for _, kind in texts],
                "parent": [module.parent for module in known],
                "site": [sites[at.site] if at else -1 for at in self.attached],
                "op": [self._op_id(at, ops) if at else -1 for at in self.attached],
                "ran": [int(module.ran) for module in known],
            },
        )

    def add_moves(
        self, builder: TraceBuilder, sites: dict[int, int], ops: OpNumbering, device: Callable[[Any], int]
    ) -> None:
        for moved, row, tensors in self.moves:
            builder.append(
                "moves",
                module=row,
                site=sites[moved.at.site],
                op=self._op_id(moved.at, ops),
                device=-1 if moved.device is None else device(moved.device),
                tensors=tensors,
            )

    def _op_id(self, at: Happening, ops: OpNumbering) -> int:
        if at.tick < self._first_tick:
            return self._rank[at.tick]
        op = max(at.op, 0)
        return ops.boundary(op >> THREAD_SHIFT, op & NUMBERS)


def _tensor_count(moved: MovedModule) -> int:
    module = moved.module()
    return count_registered(module) if moved.tensors == UNCOUNTED and module is not None else moved.tensors


def _attachment(known: KnownModule) -> Happening | None:
    """Return where a module was attached; of one that is gone, where it was when it first ran."""
    if known.parent < 0:
        return None
    module = known.module()
    at = known.attached if module is None else process.modules.attached_at(module)
    return unpack_happening(at) if at >= 0 else None
