"""Makes the trace of a recorder: ids become rows, names and lines are found."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from devtrace.recording.columns.graph import Array, Numbered, forward_ops
from devtrace.recording.columns.operator_info import COMPUTE, COPY, SYNC, by_id
from devtrace.recording.columns.recorded_ops import Copied, RecordedOps
from devtrace.recording.columns.sites import cells_so_far
from devtrace.recording.columns.tensor_rows import size_of
from devtrace.recording.columns.thread_state import NUMBERS, THREAD_SHIFT
from devtrace.recording.context.modules import Modules
from devtrace.recording.context.optimizers import Optimizers
from devtrace.recording.finish.history import ModuleHistory
from devtrace.recording.finish.merge import Merged
from devtrace.recording.finish.names import TensorNames
from devtrace.recording.finish.site_rows import add_sites
from devtrace.recording.finish.tensors import Tensors
from devtrace.runtime.quiet import Quiet, untransformed
from devtrace.runtime.requirements import own_version
from devtrace.source.live_objects import Evidence
from devtrace.source.snapshot import Objects, Snapshot, frozen
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.columns import OP_KINDS, PHASES
from devtrace.trace.ledger_counts import Copies, Ops, callers_of_backward, count
from devtrace.trace.tables import TraceData


class Recorded(NamedTuple):
    """A trace, and what was there beside it."""

    trace: TraceData
    snapshot: Snapshot


class Assembly:
    """A trace that is made. `site_rows`: from the process's sites to its rows; `tensors`: from the recorder's rows."""

    def __init__(
        self,
        recorder: RecordedOps,
        modules: Modules,
        optimizers: Optimizers,
        names: Mapping[str, Any] | None,
        *,
        title: str,
        simulated: Callable[[str], bool],
        extra_sites: Iterable[int],
    ) -> None:
        """`names` are the user's variables; sites that no row names get rows too if they are `extra_sites`."""
        self.names = TensorNames(recorder.rows, names)
        with Quiet():
            self.names.collect(modules, optimizers)
        recorder.finish()
        recorded = datetime.fromtimestamp(recorder.recorded, UTC).isoformat(timespec="microseconds")
        self.builder = TraceBuilder(title, recorded, f"devtrace {own_version()}")
        self.recorder = recorder
        self.modules = modules
        self.simulated = simulated
        self.host = -1
        self.devices: dict[Any, int] = {}
        self.merged = Merged(recorder.threads, recorder.origin)
        self.tensors = Tensors(recorder.rows, self.merged, self._device_row)
        self.inputs = self.tensors.lists(self.merged.inputs)
        self.outputs = self.tensors.lists(self.merged.outputs)
        self.history = ModuleHistory(modules, recorder.first_tick)
        self.device = self._op_devices()
        self.kind = self._kinds()
        self.forward = self._forward()
        site = self._site_of_ops()
        self.site_rows = add_sites(self.builder, self._sites_in_use(site, extra_sites))
        self.trace = self._build(site)

    def _sites_in_use(self, site_of_ops: Array, extra_sites: Iterable[int]) -> set[int]:
        """Return the sites that get a row."""
        of_observers = chain.from_iterable(observer.sites() for observer in self.recorder.observers.values())
        return {*site_of_ops.tolist(), *self.tensors.site.tolist(), *self.history.sites(), *of_observers, *extra_sites}

    def _build(self, site_of_ops: Array) -> TraceData:
        merged, rows = self.merged, self.site_rows
        row_of_site = np.full(max(rows) + 2, -1, dtype=np.int32)
        row_of_site[list(rows)] = list(rows.values())
        self.history.add_modules(self.builder, self.names.paths(self.modules.known), rows, merged.numbering)
        self.history.add_moves(self.builder, rows, merged.numbering, self._device_row)
        for state in self.recorder.threads:
            self.builder.append("threads", name=state.name, rank=self.recorder.rank)
        self._add_ops(row_of_site[site_of_ops], self._add_calls())
        role, name = self.names.columns(self.tensors.rows, self.builder.text)
        self.builder.columns("tensors", self.tensors.columns(self.builder, row_of_site, role, name))
        self._add_copies_and_errors()
        for observer in self.recorder.observers.values():
            observer.add_rows(self, rows)
        self._add_ledger(row_of_site[site_of_ops])
        self.builder.notes = self.recorder.noted()
        return self.builder.build()

    def snapshot(
        self, frames: Sequence[tuple[int, FrameType]], names: Mapping[str, Any] | None, evidence: Evidence
    ) -> Snapshot:
        """Return what is there beside the trace, frozen when a rule first asks. `frames`: the error's, with sites."""

        def row(tensor: object) -> int | None:
            id = self.row_of(tensor)
            return self.row_of(untransformed(tensor)) if id is None else id

        def freeze() -> Objects:
            with Quiet():
                return frozen([frame for _, frame in frames], names, row, {str(site.file) for site in self.trace.sites})

        return Snapshot(
            freeze,
            tuple(self.site_rows[site] for site, _ in frames),
            cells=cells_so_far(),
            evidence=evidence,
            facts=tuple(fact for observer in self.recorder.observers.values() for fact in observer.facts(self)),
        )

    def _site_of_ops(self) -> Array:
        """Return the site of each op: a backward op's is its forward op's, else where backward was called.

        Where ops were left out, a forward op may be among them; its backward op is then where others like it are, if
        these are all at one line.
        """
        merged, forward = self.merged, self.forward
        if not len(merged):
            return merged.site
        site: Array = np.where(forward >= 0, merged.site[forward], merged.site)
        if self.recorder.gap >= 0:
            kinds = np.stack([merged.operator, merged.node, merged.site, self.device], axis=1)
            orphans = np.flatnonzero(merged.backward & (merged.sequence >= 0) & (forward < 0))
            for kind in np.unique(kinds[orphans], axis=0):
                is_alike = (kinds == kind).all(axis=1)
                lines = np.unique(site[is_alike & (forward >= 0)])
                if len(lines) == 1:
                    site[is_alike & merged.backward & (merged.sequence >= 0)] = lines[0]
        return site

    def row_of(self, tensor: object) -> int | None:
        """Return the row of a live tensor in the trace; None if it has none."""
        return self.tensors.row_of(self.recorder.rows.row_of(tensor))

    def rows_of(self, tensors: Iterable[object]) -> Array:
        """Return the rows of live tensors in the trace; -1 for one that has none."""
        rows = [-1 if row is None else row for row in map(self.recorder.rows.row_of, tensors)]
        return self.tensors.rows_of(np.array(rows, dtype=np.int64))

    def op_of(self, op: int) -> int:
        """Return the trace's op for an op of the recorder, or the next op where that was folded away; -1 for -1."""
        return -1 if op < 0 else self.merged.numbering.boundary(op >> THREAD_SHIFT, op & NUMBERS)

    def _device_row(self, device: Any) -> int:
        row = self.devices.get(device)
        if row is None:
            name = str(device)
            row = self.devices[device] = self.builder.device(name, simulated=self.simulated(name))
            if name == "cpu":
                self.host = row
        return row

    def _op_devices(self) -> Array:
        """Return the device of each op: that of its first output (for a copy between devices where the data arrives).

        An op without outputs raised or reads a value. It runs where the dispatcher sends it: on the device of its first
        input that is not on the host.
        """
        device = np.full(len(self.merged), -1, dtype=np.int32)
        of_input = self.tensors.device[self.inputs.flat]
        op_of_input = self.inputs.rows
        for indexes in (np.arange(len(of_input)), np.flatnonzero(of_input != self.host)):
            device[op_of_input[indexes[::-1]]] = of_input[indexes[::-1]]  # the last write is the first input's
        has_output = self.outputs.lengths > 0
        device[has_output] = self.tensors.device[self.outputs.flat[self.outputs.offsets[:-1][has_output]]]
        waits = self.recorder.waits
        for waited, op in zip(waits, self._op_ids(waits), strict=True):
            device[op] = self._device_row(waited.device)
        return device

    def _kinds(self) -> Array:
        """Return the kind of each op: by its operator, but for a mask and for a list that was lifted onto a device."""
        carries_data = np.isin(np.arange(len(self.merged)), self._op_ids(self.recorder.copies))
        lifts = self.merged.by_operator(lambda operator: operator.lifts).astype(np.bool_)
        kind = self.merged.by_operator(lambda operator: operator.kind)
        kinds: Array = np.where(self.merged.mask, SYNC, np.where(lifts & carries_data, COPY, kind))
        return kinds

    def _forward(self) -> Array:
        merged = self.merged
        ops = Numbered(merged.sequence, merged.backward, merged.operator, merged.node, self.device, merged.thread)
        nodes = [kind.__name__ for kind in self.recorder.nodes]
        return forward_ops(ops, [operator.name for operator in by_id], nodes).astype(np.int32)

    def _add_calls(self) -> Array:
        """Add the rows of calls; return for each op the innermost call that it is in.

        An op of the backward pass is of the call that its forward op is in, which has ended by then.
        """
        call_of_ops = np.full(len(self.merged), -1, dtype=np.int32)
        boundary = self.merged.numbering.boundary
        for state in self.recorder.threads:
            rows = {-1: -1}
            of_thread = self.merged.thread == state.index
            for call in state.calls():
                begin, end = boundary(state.index, call.begin), boundary(state.index, call.end)
                row = rows[call.id] = self.builder.append(
                    "calls",
                    module=call.module,
                    parent=rows.get(call.parent, -1),
                    begin=begin,
                    end=end,
                    thread=state.index,
                    training=call.training,
                )
                call_of_ops[begin:end][of_thread[begin:end]] = row
        return np.where((call_of_ops < 0) & (self.forward >= 0), call_of_ops[self.forward], call_of_ops)

    def _add_ops(self, site: Array, call: Array) -> None:
        merged, text = self.merged, self.builder.text
        names = merged.by_operator(lambda operator: text(operator.name)).astype(np.int32)
        kinds = np.array([text(kind) for kind in OP_KINDS], dtype=np.int32)
        phases = np.array([text(phase) for phase in PHASES], dtype=np.int32)
        phase = np.where((call >= 0) | (merged.sequence >= 0), PHASES.index("forward"), PHASES.index("other"))
        phase = np.where(merged.optimizer, PHASES.index("optimizer"), phase)
        phase = np.where(merged.backward, PHASES.index("backward"), phase)
        self.builder.columns(
            "ops",
            {
                "name": names,
                "start": merged.start,
                "duration": merged.duration,
                "device": self.device,
                "kind": kinds[self.kind],
                "phase": phases[phase],
                "call": call,
                "site": site,
                "thread": merged.thread.astype(np.int32),
                "inputs": self.inputs,
                "outputs": self.outputs,
                "forward": self.forward,
                "grad": merged.grad,
            },
        )

    def _add_copies_and_errors(self) -> None:
        sources = self.tensors.rows_of(np.array([copied.row for copied in self.recorder.copies], np.int64)).tolist()
        for row, (copied, op, source, target) in zip(sources, self._copies_with_ops(), strict=True):
            self.builder.append(
                "copies",
                op=op,
                **{"from": source},
                to=target,
                bytes=size_of(self.recorder.rows.layouts[copied.source]),
                pinned=int(copied.pinned),
                non_blocking=int(copied.non_blocking),
                source=row,
            )
        failures = self.recorder.failures
        for failed, op in zip(failures, self._op_ids(failures), strict=True):
            self.builder.append("errors", op=op, type=failed.type, message=failed.message)

    def _copies_with_ops(self) -> Iterator[tuple[Copied, int, int, int]]:
        """Yield each copy with its op and the devices of its ends."""
        layouts, copies = self.recorder.rows.layouts, self.recorder.copies
        for copied, op in zip(copies, self._op_ids(copies), strict=True):
            yield copied, op, self._device_row(layouts[copied.source][2]), self._device_row(layouts[copied.target][2])

    def _op_ids(self, notes: list[Any]) -> list[int]:
        ids: list[int] = self.merged.numbering.ids_of(np.array([note.op for note in notes], dtype=np.int64)).tolist()
        return ids

    def _add_ledger(self, site: Array) -> None:
        """Add a ledger of the folded ops; diagnosis adds its counts of the others."""
        times = self.merged.times - 1
        self.builder.truncated = int(times.sum())
        if not self.builder.truncated:
            return
        deep = self.tensors.have_dimensions(self.inputs) | self.tensors.have_dimensions(self.outputs)
        copies = [(op, source, to, copied.times - 1, copied.more) for copied, op, source, to in self._copies_with_ops()]
        by_device, counts = count(
            Ops(site, self.device, times, self.kind == SYNC, self.kind == COMPUTE, deep, self._paid_at(site)),
            Copies(*np.array(copies, dtype=np.int64).reshape(-1, 5).T),
            sites=self.builder.count("sites"),
            devices=self.builder.count("devices"),
            host=self.host,
        )
        busy = by_device.any(axis=1) | np.any(list(counts.values()), axis=0)
        for row in np.flatnonzero(busy).tolist():
            columns = {name: int(column[row]) for name, column in counts.items()}
            self.builder.append("ledger", site=row, ops=by_device[row].tolist(), **columns)

    def _paid_at(self, site: Array) -> Array:
        seeds = self.merged.by_operator(lambda operator: operator.name == "aten.ones_like").astype(np.bool_)
        return callers_of_backward(site, self.merged.backward, self.forward, seeds)
