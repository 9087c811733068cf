"""Pasts of tensors: the moves that the hooks saw as ops, in their order, and copies that were taken before a move.

A copy, a view or a cache that is not where its source is now was taken while the source was still there. So its op
comes before the move of its source.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import torch

from devtrace.explaining.reading.values import ReadOp, TensorValue
from devtrace.recording.columns import stamps
from devtrace.recording.columns.operator_info import COPY, VIEW
from devtrace.recording.columns.process_history import ErrorMark, Moved, Past, Stamp, history
from devtrace.recording.columns.tensor_rows import Rows
from devtrace.recording.context.module_tree import subtree
from devtrace.runtime.quiet import device_of, dtype_of, shape_of
from devtrace.source.object_walk import registered

BEFORE_ALL: Final = -1
"""Depth of an op that ran before anything that still runs."""
AFTER_ALL: Final = 1 << 30
"""Depth of an op that ran after the failure, where somebody handled it."""
MOST_COPIES: Final = 20


class Former(NamedTuple):
    """A tensor before its move: its row and device, and the op that moved it."""

    row: int
    device: str
    move: ReadOp


def _cast_from(dtype: torch.dtype) -> torch.dtype:
    return torch.float16 if dtype == torch.float32 else torch.float32


class Pasts:
    """Moved tensors of one explanation. `ops` are all ops so far, `errors` the marks of the exceptions explained."""

    def __init__(self, rows: Rows, ops: list[ReadOp], errors: frozenset[ErrorMark | None]) -> None:
        self._rows = rows
        self._ops = ops
        self._formers: dict[int, Former] = {}
        self._by_row: dict[int, ReadOp] = {}
        self._moves = list(history.moves)
        self._ticks: dict[int, int] = {moved.at.site: moved.at.tick for moved in self._moves}
        self._after: set[int] = {moved.at.site for moved in _last_of(self._moves, errors)}

    def add_read(self, op: ReadOp, inputs: list[TensorValue]) -> None:
        """Remember an op that was read; one that copies to another device makes a former of its input."""
        self._by_row[op.row] = op
        if op.name == "aten._to_copy" and inputs:
            self._formers[op.row] = Former(inputs[0].row, inputs[0].device, op)

    def row_after_moves(self, tensor: Any, stamp: Stamp) -> int:
        """Return a new row for a tensor that the hooks saw moving, after ops for its moves."""
        shape, dtype = shape_of(tensor), dtype_of(tensor)
        is_cast = stamp[3] is not None and stamp[3][1] == device_of(tensor)  # nothing else gave a new tensor there
        earlier = self._row_before(stamp[3], shape, _cast_from(dtype) if is_cast else dtype)
        row, layout = next(self._rows.next), self._rows.layout_of(shape, dtype, device_of(tensor))[2]
        self._move(row, layout, stamp[2], earlier)
        return row

    def _row_before(self, past: Past | None, shape: Any, dtype: Any) -> tuple[int, str] | None:
        if past is None:
            return None
        site, device, earlier = past
        before = self._row_before(earlier, shape, dtype)
        layout = self._rows.layout_of(shape, dtype, device)[2]
        if before is None:
            return self._rows.add(layout, -1, -1, site), str(device)
        row = next(self._rows.next)
        self._move(row, layout, site, before)
        return row, str(device)

    def _move(self, row: int, layout: int, site: int, before: tuple[int, str] | None) -> None:
        inputs, tick = [before[0]] if before is not None else [], self._ticks.get(site, 0)
        depth = AFTER_ALL if site in self._after else BEFORE_ALL
        op = ReadOp("aten._to_copy", COPY, site, inputs, row, layout, depth, tick=tick, is_seen=True)
        self._ops.append(op)
        self._by_row[row] = op
        if before is not None:
            self._formers[row] = Former(*before, op)

    # Copies that were taken before.

    def taken_before(self, made: TensorValue, device: str) -> bool:
        """Put an op on a device where its source was, before its source moved; return whether that explains it."""
        return self._copied_before(made, device) or self._cached_before(made, device)

    def _copied_before(self, made: TensorValue, device: str) -> bool:
        chain: list[ReadOp] = []
        row = made.row
        while len(chain) < MOST_COPIES:
            former = self._formers.get(row)
            if former is not None and former.device == device and chain:
                self._put_before(chain[::-1], former)
                return True
            op = self._by_row.get(row)
            if op is None or not op.inputs or not (op.kind in (VIEW, COPY) or op.name.endswith("_like")):
                return False
            chain.append(op)
            row = op.inputs[0]
        return False

    def _put_before(self, chain: list[ReadOp], former: Former) -> None:
        chain[0].inputs = [former.row, *chain[0].inputs[1:]]
        for op in chain:
            op.layout = self._rows.on_device(op.layout, torch._C.device(former.device))
            op.depth, op.tick = former.move.depth, former.move.tick
            self._ops.remove(op)
        at = self._ops.index(former.move)
        self._ops[at:at] = chain

    def _cached_before(self, made: TensorValue, device: str) -> bool:
        """Put what a module made for itself before the module's move away from a device."""
        owner = made.op.owner if made.op is not None else None
        moved = next((each for each in self._moves if self._took(each, owner, device)), None)
        if made.op is None or owner is None or moved is None:
            return False
        for op in self._put_in_earlier_call(made.op, moved.at.tick):
            op.layout = self._rows.on_device(op.layout, torch._C.device(device))
        return True

    def made_before(self, last: ReadOp, tick: int) -> None:
        """Put what a module made in a call before a move that saw it among the module's attributes."""
        if last.owner is not None and last.depth != BEFORE_ALL:
            self._put_in_earlier_call(last, tick)

    def _put_in_earlier_call(self, last: ReadOp, tick: int) -> list[ReadOp]:
        """Put an op, and those of its module that led to it, into a call of the module before a tick."""
        ops = self._made_by(last, last.owner)
        rows = {op.row for op in ops}
        for op in ops:
            op.inputs = [row for row in op.inputs if row in rows]
            op.depth, op.tick, op.module = BEFORE_ALL, tick - 0.5, last.owner
        return ops

    def _made_by(self, last: ReadOp, owner: Any) -> list[ReadOp]:
        """Return an op, and all in methods of a module that led to it."""
        found, waiting = {last.row: last}, [last]
        while waiting:
            before = [self._by_row.get(row) for row in waiting.pop().inputs]
            new = [op for op in before if op is not None and op.owner is owner and op.row not in found]
            found |= {op.row: op for op in new}
            waiting += new
        return list(found.values())

    def _took(self, moved: Moved, module: Any, device: str) -> bool:
        """Return whether a move took a module away from a device."""
        root = moved.module()
        if root is None or not any(part is module for _, part in subtree(root)):
            return False
        return any((moved.at.site, device) in self._steps(tensor) for _, tensor in registered(root))

    def _steps(self, tensor: Any) -> Iterator[tuple[int, str]]:
        """Yield the site of each move of a tensor that the hooks saw, with the device that it left."""
        former = self._formers.get(self._rows.row_of(tensor) or -1)
        while former is not None:
            yield former.move.site, former.device
            former = self._formers.get(former.row)
        _, _, site, past = stamps.get(tensor)
        while past is not None:
            yield site, str(past[1])
            site, _, past = past

    def op_of(self, row: int) -> ReadOp | None:
        """Return the op that made a row."""
        return self._by_row.get(row)

    def believe(self, row: int) -> None:
        """Take the op that made a row, and those before it, for what happened; others were only tried."""
        waiting = [row]
        while waiting:
            op = self._by_row.get(waiting.pop())
            if op is not None and not op.is_believed:
                op.is_believed = True
                waiting += op.inputs

    def former(self, row: int) -> Former | None:
        return self._formers.get(row)

    def copy_before(self, name: str, former: Former, site: int, layout: int) -> ReadOp:
        """Note that a tensor was copied before its move; return the op, of which the copy is the result."""
        row, move = next(self._rows.next), former.move
        op = ReadOp(name, COPY, site, [former.row], row, layout, move.depth, tick=move.tick, is_believed=True)
        self._ops.insert(self._ops.index(move), op)
        self._by_row[row] = op
        return op


def _last_of(moves: list[Moved], errors: frozenset[ErrorMark | None]) -> list[Moved]:
    """Return the last moves on end that handled one of some errors; before others, another error had that address."""
    found: list[Moved] = []
    for moved in reversed(moves):
        if moved.handling is not None and moved.handling in errors:
            found.append(moved)
        elif found:
            break
    return found
