"""The holders of a device's memory: storages grouped by the name that holds them and by kind, the largest first."""

import ast
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.memory.retaining_line import Keeper, being_made, keeper
from devtrace.memory.shortage import NOBODY, Holding, Shortage
from devtrace.source.matching import called_names
from devtrace.source.stand_ins import Frame
from devtrace.source.vocabulary import HOST
from devtrace.trace.ids import NO_CALL, NO_SITE, NO_TENSOR, CallId, OpId, SiteId, TensorId

_OF_GRAPHS: Final = ("graph", "activation")
_COLLECTED: Final = ("graph", "named")
_SEVERAL: Final = 2
_WORTH: Final = 0.1  # of all memory
_SMALL: Final = 100  # times smaller than the memory that it keeps


@dataclass
class Group:
    """Storages that one name holds in one way."""

    kind: str
    name: str
    holdings: list[Holding] = field(default_factory=list)

    @cached_property
    def bytes(self) -> int:
        return sum(holding.bytes for holding in self.holdings)

    @property
    def scope(self) -> tuple[str, str, int]:
        return self.holdings[0].scope

    @property
    def root(self) -> str:
        """Return the variable that a name begins with."""
        return self.name.partition(".")[0]

    @property
    def is_contained(self) -> bool:
        return any(holding.contained for holding in self.holdings)

    def is_mostly(self, applies: Callable[[Holding], bool]) -> bool:
        """Return whether a condition is true for more than half of its bytes."""
        return sum(holding.bytes for holding in self.holdings if applies(holding)) > self.bytes / 2

    def born(self) -> SiteId:
        """Return the site at which most of it was made, -1 where no site is known."""
        sizes: Counter[SiteId] = Counter()
        for holding in self.holdings:
            sizes[holding.site] += holding.bytes
        del sizes[NO_SITE]
        return sizes.most_common(1)[0][0] if sizes else NO_SITE


@dataclass
class Memory:
    """All that was alive on a device when an allocation failed, at the op `failed`."""

    queries: TraceQueries
    shortage: Shortage
    failed: OpId

    @cached_property
    def groups(self) -> list[Group]:
        by_name: dict[tuple[str, str], Group] = {}
        for holding in self.shortage.holdings:
            by_name.setdefault((holding.kind, holding.name), Group(holding.kind, holding.name)).holdings.append(holding)
        by_shown_name: dict[tuple[str, str], Group] = {}
        for group in by_name.values():
            kind = self._kind(group)
            name = for_all_layers(group.name) or (self.made[0] if self.made is not None and kind in _COLLECTED else "")
            if kind == "named" and not name:
                kind = "temporary"  # no name leads to it
            for holding in group.holdings:
                key = kind, (self._module(holding) or name) if kind == "activation" else name
                by_shown_name.setdefault(key, Group(*key)).holdings.append(holding)
        return sorted(by_shown_name.values(), key=lambda group: -group.bytes)

    @cached_property
    def total(self) -> int:
        return sum(holding.bytes for holding in self.shortage.holdings)

    @property
    def worth(self) -> list[Group]:
        """Return the groups that are large enough to be worth letting go of."""
        return [group for group in self.groups if group.bytes >= _WORTH * self.total]

    def has_graph(self, name: str) -> bool:
        return any(holding.kind in _OF_GRAPHS and holding.name == name for holding in self.shortage.holdings)

    def keeper(self, group: Group) -> Keeper | None:
        """Return the line that keeps a group: `losses.append(loss)`."""
        if self.made is not None and group.scope == NOBODY and group.name in ("", self.made[0]):
            return self.made[1]
        return keeper(self.queries, group.name, group.scope) if group.name else None

    def code(self, group: Group) -> tuple[Code, ast.stmt] | None:
        """Return the statement that made most of a group, else the one that keeps it."""
        if (place := self.queries.source_node(group.born())) is not NOWHERE:
            return place.code, place.statement
        keeper = self.keeper(group)
        return (keeper, keeper.statement) if keeper is not None else None

    def frame_of(self, code: Code, statement: ast.stmt) -> Frame | None:
        """Return the frame that runs the function of a statement."""
        source = code.source
        function = source.function(statement)
        frames = (frame for _, frame in self.queries.frames if frame.f_code.co_filename == source.file)
        return next((frame for frame in frames if source.function_of_code(frame.f_code) is function), None)

    @cached_property
    def made(self) -> tuple[str, Keeper] | None:
        """Return the name for what a running line collects, `[model(x) for x in loader]`, and the line."""
        return being_made(self.queries)

    def _kind(self, group: Group) -> str:
        """Return "graph" for a graph that outlives its step, "activation" for what the running step needs itself."""
        if group.kind not in _OF_GRAPHS:
            return group.kind
        if any(0 <= self.queries.producer(holding.tensor) < self._step_begin for holding in group.holdings):
            return "graph"
        if self._turns(group) < _SEVERAL:
            return "activation"
        keeper = self.keeper(group)
        if keeper is None:
            return "graph" if group.name and group.kind == "graph" else "activation"
        return "graph" if keeper.adds and not keeper.runs_backward else "activation"

    def _turns(self, group: Group) -> int:
        """Return in how many outermost calls of one module a group was made; outside of calls, storages of one line."""
        calls = [self.outermost(holding) for holding in group.holdings]
        modules = [self.queries.trace.calls.number("module", call) for call in set(calls) - {NO_CALL}]
        lines = [holding.site for holding, call in zip(group.holdings, calls, strict=True) if call < 0]
        return max([*Counter(modules).values(), *Counter(lines).values()], default=0)

    def rounds(self, group: Group) -> int:
        """Return in how many rounds a group was made: calls of one module, else storages, or turns, of one line."""
        if group.kind == "parameter" or (group.kind == "named" and not self.is_of_modules(group)):
            lines = self.queries.trace.sites.ints("line")[self.queries.op_users]
            turn_of_op = np.cumsum(np.diff(lines, prepend=lines[:1]) != 0)  # a turn ends where another line runs
            producers = (self.queries.producer(holding.tensor) for holding in group.holdings)
            return len({int(turn_of_op[op]) for op in producers if op >= 0})
        return self._turns(group)

    def is_of_modules(self, group: Group) -> bool:
        """Return whether most of a group was made in calls of modules."""
        return group.is_mostly(lambda holding: self.outermost(holding) >= 0)

    def is_of_reduced(self, group: Group) -> bool:
        """Return whether a group has few numbers in memory of many: `mse_loss` reduces in place, and keeps it."""
        tensors = map(self._base, group.holdings)
        size = sum(self.queries.trace.tensors.number("bytes", tensor) for tensor in tensors if tensor >= 0)
        return 0 < size < group.bytes / _SMALL

    def is_from_the_host(self, group: Group) -> bool:
        """Return whether most of a group was copied from the CPU."""
        return group.is_mostly(lambda holding: HOST in map(self.queries.device, self._sources(holding)))

    def is_deep_copied(self, group: Group) -> bool:
        """Return whether the line that made most of a group copies deeply: `copy.deepcopy(model)`."""
        return "deepcopy" in called_names(self.queries.source_node(group.born()).statement)

    def is_of_states(self, group: Group, keeper: Keeper) -> bool:
        """Return whether most of a group was made of parts of models, or of gradients, and nothing was computed of it.

        Python copies storages in a deep copy, of which no op knows the parameter. Gradients may be read after the loop.
        """
        queries = self.queries
        inputs = queries.trace.ops.lists("inputs")
        is_computing = queries.is_kind("compute")[inputs.rows]
        used = set(queries.bases[inputs.flat[is_computing]].tolist())
        ops_of_line = np.flatnonzero(queries.op_users == group.born())
        last = ops_of_line[-1] if len(ops_of_line) else len(queries.trace.ops)
        used_in_rounds = set(queries.bases[inputs.flat[is_computing & (inputs.rows < last)]].tolist())
        is_deep, is_backward = self.is_deep_copied(group) and keeper.is_unread, queries.is_phase("backward")

        def is_state(holding: Holding) -> bool:
            tensor, sources = self._base(holding), [queries.base(source) for source in self._sources(holding)]
            is_of_parts = is_deep or (bool(sources) and all(map(queries.is_of_a_module, sources)))
            makers = map(queries.producer, sources)
            is_of_gradients = bool(sources) and all(op >= 0 and is_backward[op] for op in makers)
            is_unused = (is_of_parts and tensor not in used) or (is_of_gradients and tensor not in used_in_rounds)
            return tensor >= 0 and is_unused

        return group.is_mostly(is_state)

    def _base(self, holding: Holding) -> TensorId:
        return self.queries.base(holding.tensor) if holding.tensor >= 0 else NO_TENSOR

    def _sources(self, holding: Holding) -> list[TensorId]:
        """Return the tensors from which a storage's tensor was made."""
        tensor = self._base(holding)
        return self.queries.made_from(tensor) if tensor >= 0 else []

    def outermost(self, holding: Holding) -> CallId:
        """Return the outermost call of a module that made a storage, -1 where none did."""
        op = self.queries.producer(holding.tensor)
        return CallId(int(self.queries.outermost_calls[op])) if op >= 0 else NO_CALL

    def _module(self, holding: Holding) -> str:
        """Return `net`, or `self.net`, for a storage that a call of `net.layers.0` made."""
        call = self.outermost(holding)
        match = re.match(r"(?:self\.)?[^.]*", str(self.queries.trace.calls[call].module.path)) if call >= 0 else None
        return match[0] if match is not None else ""

    @cached_property
    def _step_begin(self) -> int:
        """Return the first op after the last backward pass, or optimizer's step, that has ended."""
        queries = self.queries
        is_in_pass = (queries.is_phase("backward") | queries.is_phase("optimizer"))[: self.failed + 1]
        others = np.flatnonzero(~is_in_pass)  # the last of them is before the pass that runs
        ended = np.flatnonzero(is_in_pass[: others[-1]]) if len(others) else others
        return int(ended[-1]) + 1 if len(ended) else 0


def for_all_layers(name: str) -> str:
    """Return a name for all layers: `net.layers.*.keys` of `net.layers.0.keys`."""
    return ".".join("*" if part.isdigit() else part for part in name.split("."))
