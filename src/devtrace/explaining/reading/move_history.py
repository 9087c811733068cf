"""Histories of tensors: their moves as ops, in order, and copies that were taken before a move.

A copy, a view or a cache that is not where its source is now was taken while the source was still there. So its op
comes before the move of its source.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import torch

from devtrace.explaining.reading.values import ReadOp, TensorValue
from devtrace.recording.columns import stamps
from devtrace.recording.columns.operator_info import COPY, VIEW
from devtrace.recording.columns.process_history import ErrorMark, MovedModule, Past, history
from devtrace.recording.columns.tensor_rows import Rows
from devtrace.recording.context.module_tree import subtree
from devtrace.source.object_walk import registered

BEFORE_ALL: Final = -1
"""Depth of an op that ran before anything that still runs."""
AFTER_ALL: Final = 1 << 30
"""Depth of an op that ran after the failure, where somebody handled it."""
MOST_COPIES: Final = 20


class Former(NamedTuple):
    """A tensor before its move: its row, device and dtype, and the op that moved it."""

    row: int
    device: str
    dtype: torch.dtype | None
    move: ReadOp

    def was(self, device: str, dtype: torch.dtype | None) -> bool:
        """Return whether the tensor was on a device, and of a dtype if one is given."""
        return self.device == device and dtype in (None, self.dtype)


_NO_MOVE: Final = ReadOp("", COPY, -1, [], -1, -1, BEFORE_ALL)


class Pasts:
    """Moved tensors of one explanation. `ops` are all ops so far, `errors` the marks of the exceptions explained."""

    def __init__(self, rows: Rows, ops: list[ReadOp], errors: frozenset[ErrorMark | None]) -> None:
        self._rows = rows
        self._ops = ops
        self.formers: dict[int, Former] = {}  # of what a move made, by its row
        self.by_row: dict[int, ReadOp] = {}  # the op that made a row
        self._moves = list(history.moves)
        self._ticks: dict[int, int] = {move.at.site: move.at.tick for move in self._moves}
        self._after: set[int] = {move.at.site for move in _last_of(self._moves, errors)}

    def add_read(self, op: ReadOp, inputs: list[TensorValue]) -> None:
        """Add an op that was read; a copy to another device is a move of its input."""
        self._ops.append(op)
        self.by_row[op.row] = op
        if op.name == "aten._to_copy" and inputs:
            self.formers[op.row] = Former(inputs[0].row, inputs[0].device, inputs[0].dtype, op)

    def row_after_moves(self, past: Past, shape: Any) -> int:
        """Return a new row for a tensor that the hooks saw moving, after ops for its moves."""
        site, device, dtype, before_move = past
        layout = self._rows.layout_of(shape, dtype, device)[2]
        if before_move is None:
            return self._rows.add(layout, -1, -1, site)
        former_row = self.row_after_moves(before_move, shape)
        row, tick = next(self._rows.next), self._ticks.get(site, 0)
        depth = AFTER_ALL if site in self._after else BEFORE_ALL
        op = ReadOp("aten._to_copy", COPY, site, [former_row], row, layout, depth, tick=tick, is_seen=True)
        self._ops.append(op)
        self.by_row[row] = op
        self.formers[row] = Former(former_row, str(before_move[1]), before_move[2], op)
        return row

    # Copies that were taken before.

    def put_before_move(self, tensor: TensorValue, device: str, dtype: torch.dtype | None) -> bool:
        """Place a tensor's op before the move of its source, and return whether its device and dtype are right then.

        Copies are followed back to a tensor that moved later; for dtypes, computed tensors too.
        """
        waiting: list[tuple[int, list[ReadOp]]] = [(tensor.row, [])]
        for row, chain in waiting:
            former, op = self.formers.get(row), self.by_row.get(row)
            if former is not None and former.was(device, dtype) and chain:  # it was where the tensor is
                self._place_before(chain[::-1], former, row, dtype)
                return True
            if op is None or len(waiting) > MOST_COPIES or (op.is_seen and former is not None):
                continue
            if dtype is not None:
                waiting += [(source, [*chain, op]) for source in reversed(op.inputs)]  # a module's weights first
            elif op.kind in (VIEW, COPY) or op.name.endswith("_like"):
                waiting += [(source, [*chain, op]) for source in op.inputs[:1]]
        return self._place_cache_before_move(tensor, device, dtype)

    def _place_before(self, chain: list[ReadOp], former: Former, moved_row: int, dtype: torch.dtype | None) -> None:
        chain[0].inputs = [former.row, *(row for row in chain[0].inputs if row != moved_row)]
        for op in chain:
            op.layout = self._rows.on_device(op.layout, torch._C.device(former.device), dtype)
            op.depth, op.tick = former.move.depth, former.move.tick
            self._ops.remove(op)
        index = self._ops.index(former.move)
        self._ops[index:index] = chain

    def _place_cache_before_move(self, tensor: TensorValue, device: str, dtype: torch.dtype | None) -> bool:
        """Place the op of a module's cache before the move of the module, which missed the cache."""
        owner = tensor.op.owner if tensor.op is not None else None
        move = next((event for event in self._moves if self._moved_away(event, owner, device, dtype)), None)
        if tensor.op is None or owner is None or move is None:
            return False
        for op in self.put_in_earlier_call(tensor.op, move.at.tick):
            op.layout = self._rows.on_device(op.layout, torch._C.device(device), dtype)
        return True

    def put_in_earlier_call(self, last: ReadOp, tick: int) -> list[ReadOp]:
        """Put an op, and those of its module that led to it, into a call of the module before a tick."""
        ops = self._ops_leading_to(last, last.owner)
        rows = {op.row for op in ops}
        for op in ops:
            op.inputs = [row for row in op.inputs if row in rows]
            op.depth, op.tick, op.module = BEFORE_ALL, tick - 0.5, last.owner  # just before the tick
        return ops

    def _ops_leading_to(self, last: ReadOp, owner: Any) -> list[ReadOp]:
        """Return an op, and those before it in methods of the same module that led to it."""
        ops, waiting = {last.row: last}, [last]
        while waiting:
            sources = [self.by_row.get(row) for row in waiting.pop().inputs]
            new = [op for op in sources if op is not None and op.owner is owner and op.row not in ops]
            ops |= {op.row: op for op in new}
            waiting += new
        return list(ops.values())

    def _moved_away(self, move: MovedModule, module: Any, device: str, dtype: torch.dtype | None) -> bool:
        """Return whether a move took a module away from a device, or from a dtype there."""
        root = move.module()
        if root is None or not any(part is module for _, part in subtree(root)):
            return False
        steps = (step for _, tensor in registered(root) for step in self._former_states(tensor))
        return any(site == move.at.site and former.was(device, dtype) for site, former in steps)

    def _former_states(self, tensor: Any) -> Iterator[tuple[int, Former]]:
        """Yield the site of each move of a tensor that the hooks saw, with the tensor as it was before."""
        former = self.formers.get(self._rows.row_of(tensor) or -1)
        while former is not None:
            yield former.move.site, former
            former = self.formers.get(former.row)
        _, _, site, past = stamps.get(tensor)
        while past is not None:
            yield site, Former(-1, str(past[1]), past[2], _NO_MOVE)
            site, _, _, past = past

    def settle(self, op: ReadOp, dtype: torch.dtype, named: list[torch.dtype]) -> None:
        """Give the inputs of unknown dtype the dtype of the result, or the other one that the error names.

        The other one if a known input already accounts for the result: a sum has the larger of two dtypes.
        """
        waiting = [(op, dtype)]
        while waiting:
            result, kind = waiting.pop()
            result.is_open = False
            inputs = [self.by_row.get(row) for row in result.inputs]
            known_inputs = [op for op in inputs if op is not None and not op.is_open]
            is_covered = any(self._rows.layouts[op.layout][1] == kind for op in known_inputs)
            rest = [dtype for dtype in named if dtype != kind]
            other = rest[0] if is_covered and len(rest) == 1 and torch.promote_types(kind, rest[0]) == kind else kind
            for source in inputs:
                if source is not None and source.is_open:
                    source.layout = self._rows.on_device(source.layout, None, other)
                    waiting.append((source, other))

    def confirm(self, row: int) -> None:
        """Confirm the op that made a row, and those before it; unconfirmed ones were only tried."""
        waiting = [row]
        while waiting:
            op = self.by_row.get(waiting.pop())
            if op is not None and not op.is_confirmed:
                op.is_confirmed = True
                waiting += op.inputs

    def copy_before(self, name: str, former: Former, site: int, layout: int) -> ReadOp:
        """Note that a tensor was copied before its move; return the op, of which the copy is the result."""
        row, move = next(self._rows.next), former.move
        op = ReadOp(name, COPY, site, [former.row], row, layout, move.depth, tick=move.tick, is_confirmed=True)
        self._ops.insert(self._ops.index(move), op)
        self.by_row[row] = op
        return op


def _last_of(moves: list[MovedModule], errors: frozenset[ErrorMark | None]) -> list[MovedModule]:
    """Return the latest moves that ran while some errors were handled."""
    latest: list[MovedModule] = []
    for move in reversed(moves):
        if move.handling is not None and move.handling in errors:
            latest.append(move)
        elif latest:
            break
    return latest
