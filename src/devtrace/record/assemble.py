"""Makes the trace of what a recorder holds: ids become rows, names and lines are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.builder import TraceBuilder
from devtrace.columns import OP_KINDS, PHASES
from devtrace.record import graph
from devtrace.record.history import History
from devtrace.record.hooks import Moved
from devtrace.record.merge import Merged, merge
from devtrace.record.modules import Modules
from devtrace.record.names import Named
from devtrace.record.places import add_sites
from devtrace.record.plans import COPY, SYNC, VIEW, by_id
from devtrace.record.recorder import Recorder
from devtrace.trace import Lists, Trace

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Assembled:
    trace: Trace
    site_rows: dict[int, int]


def assemble(
    recorder: Recorder,
    modules: Modules,
    named: Named,
    *,
    title: str,
    simulated: Callable[[str], bool],
    extra_sites: list[int],
    producer: str,
) -> Assembled:
    builder = TraceBuilder(
        title, datetime.fromtimestamp(recorder.recorded, UTC).isoformat(timespec="microseconds"), producer
    )
    return _Assembly(builder, recorder, modules, named, simulated).run(extra_sites)


class _Assembly:
    def __init__(
        self,
        builder: TraceBuilder,
        recorder: Recorder,
        modules: Modules,
        named: Named,
        simulated: Callable[[str], bool],
    ) -> None:
        self.builder = builder
        self.recorder = recorder
        self.modules = modules
        self.named = named
        self.simulated = simulated
        self._names: list[str] = []  # of the devices, by row
        self.merged: Merged = merge(recorder.threads, recorder.origin)
        self.history = History(modules, recorder.first_tick)

    def run(self, extra_sites: list[int]) -> Assembled:
        merged = self.merged
        tensors = self._tensor_rows()
        device = self._op_devices(tensors["device"])
        forward = self._forward(device)
        # A backward op is where its forward op is, and where backward was called if that is not known.
        site = np.where((forward >= 0) & merged.backward, merged.site[np.maximum(forward, 0)], merged.site)
        used = {*site.tolist(), *tensors["site"].tolist(), *self.history.sites(), *extra_sites}
        rows = add_sites(self.builder, used)
        look_up = np.full(max(rows) + 2, -1, dtype=np.int32)
        for id, row in rows.items():
            look_up[id] = row
        tensors["site"] = look_up[tensors["site"]]
        self.history.add_modules(self.builder, self.named.paths(self.modules.known), rows, merged.place)
        self.history.add_moves(self.builder, rows, merged.place, self._moved_to)
        call = self._calls()
        self._threads()
        self._ops(device, look_up[site], forward, call)
        self.builder.columns("tensors", self._tensor_columns(tensors))
        self._copies_and_errors()
        self.builder.notes = list(self.recorder.notes)
        return Assembled(self.builder.build(), rows)

    def _devices(self) -> Array:
        """For each layout its device's row."""
        return np.array([self._device(device) for _, _, device in self.recorder.rows.layouts], dtype=np.int32)

    def _device(self, device: Any) -> int:
        name = str(device)
        row = self.builder.device(name, simulated=self.simulated(name))
        if row == len(self._names):
            self._names.append(name)
        return row

    def _tensor_rows(self) -> dict[str, Array]:
        """Layout, producer, source and birth site of every tensor, before its texts are known."""
        count = next(self.recorder.rows.next)
        layout, producer, source, site = (np.full(count, -1, dtype=np.int64) for _ in range(4))
        merged = self.merged
        fresh = merged.new_row >= 0
        layout[merged.new_row[fresh]] = merged.new_layout[fresh]
        producer[merged.new_row[fresh]] = np.flatnonzero(fresh)
        # A view's or a clone's source is the op's first input.
        kinds = np.array([plan.kind in (VIEW, COPY) for plan in by_id] or [False])
        begins, rows = merged.inputs
        derived = fresh & kinds[merged.plan] & (begins[1:] > begins[:-1])
        source[merged.new_row[derived]] = rows[begins[:-1][derived]]
        if self.recorder.rows.told:
            row, *columns = np.array(self.recorder.rows.told, dtype=np.int64).T
            layout[row], source[row], site[row] = columns[0], columns[2], columns[3]
            producer[row] = merged.place.of(columns[1])
        devices = self._devices()
        device = devices[layout] if len(devices) else layout
        return {"layout": layout, "producer": producer, "source": source, "site": site, "device": device}

    def _op_devices(self, of_tensor: Array) -> Array:
        """An op runs where its first output is (a copy between devices where the data arrives); one without outputs,
        because it raised or reads a value, where the dispatcher sends it: to its first input's device that is not the
        host.
        """
        device = np.full(len(self.merged.plan), -1, dtype=np.int32)
        offsets, flat = self.merged.inputs
        host = [row for row, name in enumerate(self._names) if name == "cpu"]
        for ranked in (np.arange(len(flat))[::-1], np.flatnonzero(~np.isin(of_tensor[flat], host))[::-1]):
            of_op = np.searchsorted(offsets, ranked, side="right") - 1
            device[of_op] = of_tensor[flat[ranked]]  # the last write is the first input's
        offsets, flat = self.merged.outputs
        some = offsets[1:] > offsets[:-1]
        device[some] = of_tensor[flat[offsets[:-1][some]]]
        return device

    def _forward(self, device: Array) -> Array:
        merged = self.merged
        nodes = [kind.__name__ for kind in self.recorder.nodes]
        names = [plan.name for plan in by_id]
        return graph.forward_ops(merged.sequence, merged.backward, names, merged.plan, nodes, merged.node, device)

    def _moved_to(self, moved: Moved) -> int:
        return self._device(moved.device) if moved.device is not None else -1

    def _calls(self) -> Array:
        """Rows of calls; for each op the innermost call that it is in."""
        call = np.full(len(self.merged.plan), -1, dtype=np.int32)
        place = self.merged.place
        for state in self.recorder.threads:
            first = self.builder.count("calls")
            mine = self.merged.thread == state.index
            for at in range(0, len(state.calls), 5):
                module, parent, begin, end, training = state.calls[at : at + 5]
                begins = place.boundary(state.index, begin & ((1 << 40) - 1))
                ends = place.boundary(state.index, (state.op if end < 0 else end) & ((1 << 40) - 1))
                id = self.builder.append(
                    "calls",
                    module=module,
                    parent=first + parent if parent >= 0 else -1,
                    begin=begins,
                    end=ends,
                    thread=state.index,
                    training=training,
                )
                call[begins:ends][mine[begins:ends]] = id
        return call

    def _threads(self) -> None:
        for state in self.recorder.threads:
            self.builder.append("threads", name=state.name, rank=-1)

    def _ops(self, device: Array, site: Array, forward: Array, call: Array) -> None:
        merged, text = self.merged, self.builder.text
        names = np.array([text(plan.name) for plan in by_id] or [0], dtype=np.int32)
        kinds = np.array([text(kind) for kind in OP_KINDS], dtype=np.int32)
        phases = np.array([text(phase) for phase in PHASES], dtype=np.int32)
        kind = np.array([plan.kind for plan in by_id] or [0], dtype=np.int32)[merged.plan]
        phase = np.where((call >= 0) | (merged.sequence >= 0), 0, 3)
        phase = np.where(merged.backward, 1, np.where(merged.optimizer, 2, phase))
        self.builder.columns(
            "ops",
            {
                "name": names[merged.plan],
                "start": merged.start,
                "duration": merged.duration,
                "device": device,
                "kind": kinds[np.where(merged.mask, SYNC, kind)],
                "phase": phases[phase],
                "call": call,
                "site": site,
                "thread": merged.thread.astype(np.int32),
                "inputs": _lists(merged.inputs),
                "outputs": _lists(merged.outputs),
                "forward": forward,
                "grad": merged.grad,
            },
        )

    def _tensor_columns(self, rows: dict[str, Array]) -> dict[str, Any]:
        text, layouts = self.builder.text, self.recorder.rows.layouts
        layout = rows["layout"]
        dtypes = _table([text(str(dtype).removeprefix("torch.")) for _, dtype, _ in layouts])
        shapes = _table([self.builder.shape(_dims(shape)) for shape, _, _ in layouts])
        sizes = _table([prod(_dims(shape)) * dtype.itemsize for shape, dtype, _ in layouts], np.int64)
        role, name = self.named.columns(len(layout), rows["source"], text)
        return {
            "device": rows["device"].astype(np.int32),
            "dtype": dtypes[layout],
            "shape": shapes[layout],
            "bytes": sizes[layout],
            "producer": rows["producer"].astype(np.int32),
            "site": rows["site"].astype(np.int32),
            "role": role,
            "name": name,
            "source": rows["source"].astype(np.int32),
        }

    def _copies_and_errors(self) -> None:
        layouts = self.recorder.rows.layouts
        for copied, op in zip(self.recorder.copies, self._ids([c.op for c in self.recorder.copies]), strict=True):
            shape, dtype, device = layouts[copied.source]
            self.builder.append(
                "copies",
                op=op,
                **{"from": self._device(device)},
                to=self._device(layouts[copied.target][2]),
                bytes=prod(_dims(shape)) * dtype.itemsize,
                pinned=int(copied.pinned),
                non_blocking=int(copied.non_blocking),
            )
        failures = self.recorder.failures
        for failed, op in zip(failures, self._ids([f.op for f in failures]), strict=True):
            self.builder.append("errors", op=op, type=failed.type, message=failed.message)

    def _ids(self, numbers: list[int]) -> list[int]:
        ids: list[int] = self.merged.place.of(np.array(numbers, dtype=np.int64)).tolist()
        return ids


def _dims(shape: Any) -> tuple[int, ...]:
    """A shape's numbers; a size that is still a symbol or ragged counts as -1."""
    return tuple(size if isinstance(size, int) else -1 for size in shape)


def _table(values: list[int], kind: Any = np.int32) -> Array:
    return np.array(values or [0], dtype=kind)


def _lists(pair: tuple[Array, Array]) -> Lists:
    return Lists(pair[0], pair[1].astype(np.int32))
