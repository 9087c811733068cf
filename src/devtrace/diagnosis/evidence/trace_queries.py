"""Queries over a trace: columns as arrays, tensors and what made them, sites in their source.

Rules over many ops read columns; rows are followed one by one only around a finding.
"""

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trait import DEVICE, Trait
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.slugs import Certainty
from devtrace.source import parsing
from devtrace.source.defuse import loops_around
from devtrace.source.live_objects import Evidence
from devtrace.source.parsing import NO_CODE, NO_SOURCE, FunctionNode, Source, Span
from devtrace.source.snapshot import Snapshot
from devtrace.source.stand_ins import Frame
from devtrace.trace.ids import NO_CALL, NO_MODULE, NO_OP, NO_SITE, CallId, ModuleId, OpId, SiteId, TensorId
from devtrace.trace.ledger_counts import callers_of_backward
from devtrace.trace.tables import Ints, TraceData
from devtrace.trace.views import autocasts_of_ops, modules_of_ops, outermost_calls, storage_owners

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

HOST: Final = "cpu"
META: Final = "meta"
"""Device of tensors without data."""


class SourceNode(NamedTuple):
    """A site in its source."""

    code: Code
    node: ast.AST
    statement: ast.stmt

    @property
    def source(self) -> Source:
        return self.code.source

    @property
    def function(self) -> FunctionNode | None:
        """Return the function around the site; None in a cell or a file itself."""
        return self.source.function(self.node)

    @property
    def loops(self) -> list[ast.For | ast.AsyncFor | ast.While]:
        """Return the loops around the site in its function, innermost first."""
        return loops_around(self.source, self.node)


NOWHERE: Final = SourceNode(Code(NO_SOURCE, Site("", 0)), NO_CODE, NO_CODE)
"""The code of a site without source: nothing is called, named or assigned there."""


@dataclass(frozen=True)
class TraceQueries:
    """One trace, and what was there where its program was frozen.

    `by` is the trait by which tensors are compared: their device, or their dtype.
    """

    trace: TraceData
    snapshot: Snapshot = field(default_factory=Snapshot)
    _source_nodes: dict[SiteId, SourceNode] = field(default_factory=dict)
    by: Trait = DEVICE

    def compared_by(self, trait: Trait) -> Self:
        return replace(self, by=trait)

    # Columns.

    @cached_property
    def device_names(self) -> list[str]:
        return [str(device) for device in self.trace.devices]

    @cached_property
    def move_methods(self) -> frozenset[str]:
        """Names of a tensor's methods that move or cast it: `to`, and one for each kind of device, or each dtype."""
        return self.by.methods(self.device_names)

    @cached_property
    def host(self) -> int:
        """Row of the CPU among the devices, -1 when no op touched it."""
        return self.device_names.index(HOST) if HOST in self.device_names else -1

    def is_kind(self, kind: str) -> Mask:
        return cast(Mask, self.trace.ops.ints("kind") == self.strings.get(kind, -1))

    def is_phase(self, phase: str) -> Mask:
        return cast(Mask, self.trace.ops.ints("phase") == self.strings.get(phase, -1))

    @cached_property
    def strings(self) -> dict[str, int]:
        return {text: index for index, text in enumerate(self.trace.strings)}

    @cached_property
    def users(self) -> Ints:
        """For each site its site in the user's own code: itself, or its caller's."""
        callers = self.trace.sites.ints("caller")
        return np.where(callers >= 0, callers, np.arange(len(callers), dtype=callers.dtype))

    @cached_property
    def op_users(self) -> Ints:
        """For each op its site in the user's own code, -1 for none."""
        return np.append(self.users, -1)[self.trace.ops.ints("site")]

    def user(self, site: SiteId) -> SiteId:
        """Return the user's own line of a site: itself, or who called the package that it is in; -1 for -1."""
        return SiteId(int(self.users[site])) if site >= 0 else NO_SITE

    def op_user(self, op: OpId) -> SiteId:
        return SiteId(int(self.op_users[op]))

    @cached_property
    def cost_users(self) -> Ints:
        """`op_users`, but for ops of the backward pass the line that called backward: there the program waits."""
        ops = self.trace.ops
        seeds = ops.ints("name") == self.strings.get("aten.ones_like", -1)
        return callers_of_backward(self.op_users, self.is_phase("backward"), ops.ints("forward"), seeds)

    @cached_property
    def dims(self) -> Ints:
        """Number of dimensions of each tensor; -1 where the shape is not known."""
        return np.append(self.trace.shapes.lists("dims").lengths, -1)[self.trace.tensors.ints("shape")]

    @cached_property
    def on_a_device(self) -> Mask:
        """Ops that ran on an accelerator."""
        accelerators = [id for id, name in enumerate(self.device_names) if name not in (HOST, META, "")]
        return np.isin(self.trace.ops.ints("device"), accelerators)

    # Modules: `modules.py` has what is asked of one.

    @cached_property
    def module_of_ops(self) -> Ints:
        return modules_of_ops(self.trace)

    @cached_property
    def outermost_calls(self) -> Ints:
        return outermost_calls(self.trace)

    def module(self, op: OpId) -> ModuleId:
        """Return the module in whose call an op ran; -1 for one outside of all, and for -1."""
        return ModuleId(int(self.module_of_ops[op])) if op >= 0 else NO_MODULE

    # Tensors.

    def size(self, tensor: TensorId) -> int:
        """Return how many elements a tensor has."""
        return math.prod(self.trace.tensors[tensor].shape)

    def device(self, tensor: TensorId) -> str:
        return self.device_names[self.trace.tensors.number("device", tensor)]

    def devices_of(self, *tensors: TensorId) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self.device, tensors)))

    def trait(self, tensor: TensorId) -> str:
        """Return a tensor's device, or its dtype if these are compared."""
        return self._traits[self.trace.tensors.number(self.by.name, tensor)]

    @cached_property
    def _traits(self) -> Sequence[str]:
        return self.by.all_of(self.trace)

    def calls_around(self, op: OpId) -> list[CallId]:
        """Return the calls of modules that an op ran in, the innermost first; none for -1."""
        call, calls = CallId(self.trace.ops.number("call", op)) if op >= 0 else NO_CALL, list[CallId]()
        while call >= 0:
            calls.append(call)
            call = CallId(self.trace.calls.number("parent", call))
        return calls

    def producer(self, tensor: TensorId) -> OpId:
        """Return the op that made a tensor; -1 for -1."""
        return OpId(int(self.producers[tensor])) if tensor >= 0 else NO_OP

    @cached_property
    def producers(self) -> Ints:
        """For each tensor the op that made it: the recorded one, else the first factory that returned it."""
        recorded = self.trace.tensors.ints("producer")
        outputs = self.trace.ops.lists("outputs")
        of_factories = self.is_kind("create")[outputs.rows]
        tensors, first_outputs = np.unique(outputs.flat[of_factories], return_index=True)
        factories = np.full(len(recorded), -1, dtype=recorded.dtype)
        factories[tensors] = outputs.rows[of_factories][first_outputs]
        return np.where(recorded >= 0, recorded, factories)

    def is_undated(self, tensor: TensorId) -> bool:
        """Return whether nothing says when a tensor was made, and it may be in a gap of the recording."""
        base = self.base(tensor)
        if self.producer(base) >= 0 or self.registered_late(base) >= 0 or self.trace.tensors.number("site", base) >= 0:
            return False
        views = map(TensorId, np.flatnonzero(self.bases == base).tolist())
        first_use = min((op for view in views for op in self.takers(view)[:1]), default=len(self.trace.ops))
        return 0 <= self.evidence.gap <= first_use  # `gap`: the first op after it

    def registered_late(self, base: TensorId) -> OpId:
        """Return the op before which a tensor that may have been made in a gap was registered; -1 for others."""
        return OpId(self.evidence.registered_late(base)[0])

    @cached_property
    def _takers(self) -> tuple[list[int], list[OpId]]:
        """For each tensor where its ops begin in a list, and that list: the ops by the tensors that they take."""
        inputs = self.trace.ops.lists("inputs")
        by_tensor = inputs.flat.argsort(kind="stable")
        begins = inputs.flat[by_tensor].searchsorted(range(len(self.trace.tensors) + 1))
        return begins.tolist(), inputs.rows[by_tensor].tolist()

    def takers(self, tensor: TensorId) -> list[OpId]:
        """Return the ops that take a tensor, in order."""
        begins, ops = self._takers
        return ops[begins[tensor] : begins[tensor + 1]]

    def source(self, tensor: TensorId) -> TensorId:
        return TensorId(self.trace.tensors.number("source", tensor))

    def inputs(self, op: OpId) -> list[TensorId]:
        return cast("list[TensorId]", self.trace.ops.lists("inputs")[op].tolist())

    def carried(self, op: OpId) -> list[TensorId]:
        """Return the tensors that an op copied from one device to another, as `torch._foreach_copy_` does several.

        Nothing for a copy of a Python list, which was no tensor before; for an op without a copy its first input.
        """
        return list(self._carried[op]) if op in self._carried else self.inputs(op)[:1]

    @cached_property
    def _carried(self) -> dict[OpId, list[TensorId]]:
        copies, sources = self.trace.copies, dict[OpId, list[TensorId]]()
        for op, source in zip(copies.ints("op").tolist(), copies.ints("source").tolist(), strict=True):
            sources.setdefault(op, []).extend([source] if source >= 0 else [])
        return sources

    def outputs(self, op: OpId) -> list[TensorId]:
        return cast("list[TensorId]", self.trace.ops.lists("outputs")[op].tolist())

    def kind(self, op: OpId) -> str:
        return str(self.trace.ops.raw("kind", op))

    def op_name(self, op: OpId) -> str:
        return str(self.trace.ops.raw("name", op))

    def base(self, tensor: TensorId) -> TensorId:
        """Return the tensor whose storage this one is a view of; itself when it is no view."""
        return TensorId(int(self.bases[tensor]))

    @cached_property
    def bases(self) -> Ints:
        return storage_owners(self.trace)

    @cached_property
    def autocasts(self) -> Ints:
        return autocasts_of_ops(self.trace)

    def made_from(self, tensor: TensorId) -> list[TensorId]:
        """Return the tensors that a tensor was copied, viewed or else computed from."""
        source, op = self.source(tensor), self.producer(tensor)
        if source >= 0 and (op < 0 or self.kind(op) in ("view", "copy")):
            return [source]
        return [other for other in self.inputs(op) if other != tensor] if op >= 0 else []

    def ancestors(self, tensor: TensorId, most: int = 400, *, past_modules: bool = True) -> Iterator[TensorId]:
        """Yield a tensor, then its sources, nearest first; unless `past_modules`, parameters and buffers have none."""
        seen, queue = {tensor}, [tensor]
        for reached in queue:
            yield reached
            if len(seen) < most and (past_modules or not self.is_of_a_module(reached)):
                new = [parent for parent in self.made_from(reached) if parent not in seen]
                seen.update(new)
                queue += new

    def is_of_a_module(self, tensor: TensorId) -> bool:
        """Return whether a tensor is a parameter or a buffer."""
        return self.trace.tensors.raw("role", tensor) in ("parameter", "buffer")

    @property
    def evidence(self) -> Evidence:
        return self.snapshot.evidence

    def certainty(self, tensor: TensorId) -> Certainty:
        """Return whether a tensor's birth was seen, or only the source says where that was."""
        return "seen" if self.evidence.saw_birth(self.base(tensor)) else "inferred"

    def born(self, tensor: TensorId) -> SiteId:
        """Return the site where a tensor was born, -1 when not known."""
        recorded = SiteId(self.trace.tensors.number("site", tensor))
        op = self.producer(tensor)
        return recorded if recorded >= 0 else self.op_site(op)

    # Sites and source.

    def site(self, id: SiteId) -> Site | None:
        return Site.of(self.trace.sites[id]) if id >= 0 else None

    def sites_beside(self, site: Site) -> Ints:
        """Return the rows of the sites in the function that a site is in."""
        file, function = (self.strings.get(text, -1) for text in (site.file, site.function))
        sites = self.trace.sites
        return np.flatnonzero((sites.ints("file") == file) & (sites.ints("function") == function))

    def source_node(self, id: SiteId) -> SourceNode:
        """Return a site in its source; NOWHERE without source."""
        if id not in self._source_nodes:
            self._source_nodes[id] = self.node_at(Site.of(self.trace.sites[id])) if id >= 0 else NOWHERE
        return self._source_nodes[id]

    def own_node(self, id: SiteId) -> SourceNode:
        """Return a site in its source, if that is the user's to edit."""
        return NOWHERE if self.package(id) else self.source_node(id)

    def op_site(self, op: OpId) -> SiteId:
        """Return the site of an op; -1 for -1."""
        return SiteId(self.trace.ops.number("site", op)) if op >= 0 else NO_SITE

    def op_node(self, op: OpId) -> SourceNode:
        """Return the code of an op; NOWHERE for -1."""
        return self.source_node(self.op_site(op))

    def are_of_one_statement(self, one: OpId, other: OpId) -> bool:
        """Return whether two ops are of the same statement: `grid + torch.arange(n)`."""
        node = self.op_node(one)
        return node is not NOWHERE and node.statement is self.op_node(other).statement

    def node_at(self, site: Site) -> SourceNode:
        """Return the code of a site; NOWHERE without source, or where its lines are another text's."""
        source = self.read(site.file, site.line, site.cell_id)
        node = source.node_at(Span(site.line, site.column, site.end_line, site.end_column)) if site.text else NO_CODE
        return SourceNode(Code(source, site), node, source.statement(node)) if node is not NO_CODE else NOWHERE

    def read(self, file: str, line: int, cell_id: str = "") -> Source:
        """Return the source of a file around a line: as it was recorded, else as it is now."""
        for block in self.trace.sources:
            if block.file == file and block.cell_id == cell_id:
                line_count = block.text.count("\n") + 1
                if block.line <= line < block.line + line_count:
                    return parsing.parse(block.text, file, block.line) or NO_SOURCE
        cell = next((cell for cell in self.snapshot.cells if cell.file == file), None)
        return (parsing.parse(cell.text, file, cell.first) or NO_SOURCE) if cell is not None else parsing.read(file)

    # Frames.

    @cached_property
    def failed(self) -> OpId:
        """Last op that raised, -1 when none did."""
        return self.trace.errors[-1].op.id if len(self.trace.errors) else NO_OP

    @property
    def frame_sites(self) -> list[SiteId]:
        """Sites of the error's frames, innermost first."""
        return [*map(SiteId, self.snapshot.sites)]

    @property
    def frames(self) -> list[tuple[SiteId, Frame]]:
        """Sites and frames of the error, innermost first."""
        sites = self.frame_sites
        return [*zip(sites, self.snapshot.objects.frames, strict=True)] if sites else []

    def package(self, site: SiteId) -> str:
        """Return the package whose code a site is in; empty for the user's own."""
        return str(self.trace.sites.raw("package", site)) if site >= 0 else ""
