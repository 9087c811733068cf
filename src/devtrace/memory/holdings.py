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
_WORTH: Final = 0.1
_SMALL: Final = 100


@dataclass
class Group:
    """Storages that one name holds in one way."""

    kind: str
    name: str
    holdings: list[Holding] = field(default_factory=list)

    @cached_property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.holdings)

    @property
    def scope(self) -> tuple[str, str, int]:
        return self.holdings[0].scope

    @property
    def root(self) -> str:
        """Return the variable that a name begins with."""
        return self.name.partition(".")[0]

    @property
    def is_contained(self) -> bool:
        return any(each.contained for each in self.holdings)

    def is_mostly(self, applies: Callable[[Holding], bool]) -> bool:
        """Return whether a condition is true for more than half of its bytes."""
        return sum(each.bytes for each in self.holdings if applies(each)) > self.bytes / 2

    def born(self) -> SiteId:
        """Return the site at which most of it was made, -1 where no site is known."""
        sizes: Counter[SiteId] = Counter()
        for each in self.holdings:
            sizes[each.site] += each.bytes
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
        found: dict[tuple[str, str], Group] = {}
        named: dict[tuple[str, str], Group] = {}
        for each in self.shortage.holdings:
            named.setdefault((each.kind, each.name), Group(each.kind, each.name)).holdings.append(each)
        for group in named.values():
            kind = self._kind(group)
            whole = like(group.name) or (self.made[0] if self.made is not None and kind in _COLLECTED else "")
            if kind == "named" and not whole:
                kind = "temporary"
            for each in group.holdings:
                shown = (self._module(each) or whole) if kind == "activation" else whole
                found.setdefault((kind, shown), Group(kind, shown)).holdings.append(each)
        return sorted(found.values(), key=lambda group: -group.bytes)

    @cached_property
    def total(self) -> int:
        return sum(each.bytes for each in self.shortage.holdings)

    @property
    def worth(self) -> list[Group]:
        """Return the groups that are large enough to be worth letting go of."""
        return [group for group in self.groups if group.bytes >= _WORTH * self.total]

    def has_graph(self, name: str) -> bool:
        return any(each.kind in _OF_GRAPHS and each.name == name for each in self.shortage.holdings)

    def keeper(self, group: Group) -> Keeper | None:
        """Return the line that keeps a group: `losses.append(loss)`."""
        if self.made is not None and group.scope == NOBODY and group.name in ("", self.made[0]):
            return self.made[1]
        return keeper(self.queries, group.name, group.scope) if group.name else None

    def code(self, group: Group) -> tuple[Code, ast.stmt] | None:
        """Return the statement that made most of a group, else the one that keeps it."""
        if (made := self.queries.source_node(group.born())) is not NOWHERE:
            return made.code, made.statement
        keeps = self.keeper(group)
        return (keeps, keeps.statement) if keeps is not None else None

    def frame_of(self, code: Code, statement: ast.stmt) -> Frame | None:
        """Return the frame that runs the function of a statement."""
        source = code.source
        function = source.function(statement)
        frames = (frame for _, frame in self.queries.frames if frame.f_code.co_filename == source.file)
        return next((each for each in frames if source.function_of_code(each.f_code) is function), None)

    @cached_property
    def made(self) -> tuple[str, Keeper] | None:
        """Return what a running line collects before that has a name."""
        return being_made(self.queries)

    def _kind(self, group: Group) -> str:
        """Tell a graph that outlives its step from what the step that runs keeps for its backward pass."""
        if group.kind not in _OF_GRAPHS:
            return group.kind
        if any(0 <= self.queries.producer(each.tensor) < self._begun for each in group.holdings):
            return "graph"
        if self._turns(group) < _SEVERAL:
            return "activation"
        found = self.keeper(group)
        if found is None:
            return "graph" if group.name and group.kind == "graph" else "activation"
        return "graph" if found.adds and not found.runs_backward else "activation"

    def _turns(self, group: Group) -> int:
        """Return how many outermost calls of one module made a group; outside of any, how many storages one line."""
        calls = [self.outermost(each) for each in group.holdings]
        modules = [self.queries.trace.calls.number("module", call) for call in set(calls) - {NO_CALL}]
        lines = [each.site for each, call in zip(group.holdings, calls, strict=True) if call < 0]
        return max([*Counter(modules).values(), *Counter(lines).values()], default=0)

    def rounds(self, group: Group) -> int:
        """Return in how many rounds a group was made: calls of one module, else storages, or turns, of one line."""
        if group.kind == "parameter" or (group.kind == "named" and not self.is_of_modules(group)):
            lines = self.queries.trace.sites.ints("line")[self.queries.op_users]
            turns = np.cumsum(np.diff(lines, prepend=lines[:1]) != 0)
            producers = (self.queries.producer(each.tensor) for each in group.holdings)
            return len({int(turns[op]) for op in producers if op >= 0})
        return self._turns(group)

    def is_of_modules(self, group: Group) -> bool:
        """Return whether calls of modules made most of a group, or what they gave."""
        return group.is_mostly(lambda each: self.outermost(each) >= 0)

    def is_of_reduced(self, group: Group) -> bool:
        """Return whether a group has few numbers in memory of many: `mse_loss` reduces in place, and keeps it."""
        rows = map(self._base, group.holdings)
        size = sum(self.queries.trace.tensors.number("bytes", row) for row in rows if row >= 0)
        return 0 < size < group.bytes / _SMALL

    def is_from_the_host(self, group: Group) -> bool:
        """Return whether most of a group was copied from the CPU."""
        return group.is_mostly(lambda each: any(self.queries.device(row) == HOST for row in self._sources(each)))

    def is_deep_copied(self, group: Group) -> bool:
        """Return whether the line that made most of a group copies deeply: `copy.deepcopy(model)`."""
        return "deepcopy" in called_names(self.queries.source_node(group.born()).statement)

    def is_of_states(self, group: Group, keeps: Keeper) -> bool:
        """Return whether most of a group was made of parts of models, or of gradients, and nothing was computed of it.

        Python copies storages in a deep copy, of which no op knows the parameter. Gradients may be read after the loop.
        """
        queries = self.queries
        inputs = queries.trace.ops.lists("inputs")
        takes = queries.is_kind("compute")[inputs.rows]
        taken = set(queries.bases[inputs.flat[takes]].tolist())
        made = np.flatnonzero(queries.op_users == group.born())
        last = made[-1] if len(made) else len(queries.trace.ops)
        in_rounds = set(queries.bases[inputs.flat[takes & (inputs.rows < last)]].tolist())
        is_deep, backward = self.is_deep_copied(group) and keeps.is_unread, queries.is_phase("backward")

        def is_state(each: Holding) -> bool:
            row, given = self._base(each), [queries.base(source) for source in self._sources(each)]
            is_of_parts = is_deep or (bool(given) and all(map(queries.is_of_a_module, given)))
            makers = map(queries.producer, given)
            is_of_gradients = bool(given) and all(op >= 0 and backward[op] for op in makers)
            return row >= 0 and ((is_of_parts and row not in taken) or (is_of_gradients and row not in in_rounds))

        return group.is_mostly(is_state)

    def _base(self, holding: Holding) -> TensorId:
        return self.queries.base(holding.tensor) if holding.tensor >= 0 else NO_TENSOR

    def _sources(self, holding: Holding) -> list[TensorId]:
        """Return what a tensor was made from."""
        row = self._base(holding)
        return self.queries.made_from(row) if row >= 0 else []

    def outermost(self, holding: Holding) -> CallId:
        """Return the outermost call of a module that made a storage, -1 where none did."""
        op = self.queries.producer(holding.tensor)
        return CallId(int(self.queries.outermost_calls[op])) if op >= 0 else NO_CALL

    def _module(self, holding: Holding) -> str:
        """Return the variable, or the attribute of `self`, that a storage's module was called by."""
        call = self.outermost(holding)
        named = re.match(r"(?:self\.)?[^.]*", str(self.queries.trace.calls[call].module.path)) if call >= 0 else None
        return named[0] if named is not None else ""

    @cached_property
    def _begun(self) -> int:
        """Return the first op after the last backward pass, or optimizer's step, that has ended."""
        queries = self.queries
        is_later = (queries.is_phase("backward") | queries.is_phase("optimizer"))[: self.failed + 1]
        others = np.flatnonzero(~is_later)  # the last of them is before the pass that runs
        ended = np.flatnonzero(is_later[: others[-1]]) if len(others) else others
        return int(ended[-1]) + 1 if len(ended) else 0


def like(name: str) -> str:
    """Return a name for all layers: `net.layers.*.keys` of `net.layers.0.keys`."""
    return ".".join("*" if part.isdigit() else part for part in name.split("."))
