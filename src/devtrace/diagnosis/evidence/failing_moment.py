"""The failing moment with its objects: the names that lead to a tensor of the trace, and its siblings."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath, Walk
from devtrace.diagnosis.evidence.lent_modules import Hook, hook_of
from devtrace.diagnosis.evidence.torchs_sentences import refused_gradient
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source import kinds
from devtrace.source.comprehension_iteration import ARE_LOST, lost_variables
from devtrace.source.object_walk import is_tensor, items_of, may_lead, members, registered
from devtrace.source.safe_values import Scope
from devtrace.source.stand_ins import Frame, Parameter
from devtrace.trace.ids import TensorId
from devtrace.trace.tables import Ints

_MOST_PARTS: Final = 100


@dataclass(frozen=True)
class FailingMoment:
    """Frames of an error, innermost first, and all that their variables lead to."""

    queries: TraceQueries
    ways: dict[tuple[str, str], tuple[Ints, Ints]] = field(default_factory=dict)
    """For a function of a file the ops of its lines, with these; `execution_order.py` finds them once."""

    @cached_property
    def frames(self) -> list[Frame]:
        return [frame for _, frame in self.queries.frames]

    @property
    def namespace(self) -> Mapping[str, Any]:
        """Return the user's variables, else the names of the program's outermost frame."""
        names = self.queries.snapshot.objects.names
        return names if names is not None else self.frames[-1].f_globals if self.frames else {}

    @cached_property
    def walk(self) -> Walk:
        variables = [access_paths.roots(frame) for frame in self.frames]
        for found, lost in zip(variables, self._lost, strict=True):
            found.update((name, (value, "variable")) for name, value in lost.items())
        names = self.queries.snapshot.objects.names
        if names is not None and not any(frame.f_globals is names for frame in self.frames):
            variables.append({name: (value, "global") for name, value in names.items() if name[:1] != "_"})
        return Walk(variables)

    @cached_property
    def whole_walk(self) -> Walk:
        """Walk from all of the user's names: a statement that runs alone, as in `devtrace fix`, mentions few."""
        own = [(name, value) for name, value in self.namespace.items() if name[:1] != "_" and may_lead(value)]
        others = [(name, value) for name, value in own if id(value) not in self.walk.references]
        return Walk([*self.walk.frames, {name: (value, "global") for name, value in others}]) if others else self.walk

    @cached_property
    def hooks(self) -> dict[int, Hook]:
        """Hooks that bring inputs or weights to a device, by the ids of their modules; variables lead to these."""
        modules = self.whole_walk.of_kind(kinds.is_module)
        return {id(each): hook for each in modules if (hook := hook_of(each)) is not None}

    @cached_property
    def _lost(self) -> list[dict[str, Any]]:
        """Variables of comprehensions, of each frame: an error takes them along."""
        if not ARE_LOST:
            return [{} for _ in self.frames]
        nodes = (self.queries.source_node(site) for site, _ in self.queries.frames)
        below = [None, *self.frames]
        around = zip(self.frames, nodes, below, strict=False)
        return [lost_variables(frame, (at.source, at.node), inner, self.trait_of) for frame, at, inner in around]

    @cached_property
    def by_row(self) -> dict[TensorId, list[Any]]:
        """Tensors that variables lead to, by row."""
        found: dict[TensorId, list[Any]] = defaultdict(list)
        for tensor in self.walk.tensors:
            row = self.row(tensor)
            if row is not None:
                found[row].append(tensor)
        return found

    @cached_property
    def _by_base(self) -> dict[TensorId, list[Any]]:
        found: dict[TensorId, list[Any]] = defaultdict(list)
        for row, tensors in self.by_row.items():
            found[self.queries.base(row)] += tensors
        return found

    def of(self, queries: TraceQueries) -> FailingMoment:
        """Return the same moment for queries of the same trace by another trait; the objects are walked once."""
        other = FailingMoment(queries, self.ways)
        if "walk" in vars(self) or self.frames:
            vars(other)["walk"] = self.walk
        return other

    def row(self, tensor: object) -> TensorId | None:
        """Return the trace's row of a tensor."""
        row = tensor._row if is_tensor(tensor) else -1  # type: ignore[attr-defined]
        return TensorId(row) if 0 <= row < len(self.queries.bases) else None

    def trait_of(self, value: object) -> str:
        """Return the device, or dtype, that a tensor had as the recording ended: "cuda:0" of `x`, "" of `3`.

        A module has that of its first parameter, one that no op has used what the parameter itself says.
        """
        parameters = (each for _, each in registered(value) if kinds.is_parameter(each))
        tensor = next(parameters, None) if kinds.is_module(value) else value
        row = self.row(tensor)
        if row is None and type(tensor) is Parameter:  # a model of an earlier cell
            return tensor._device if self.queries.by.name == "device" else tensor._dtype
        return self.queries.trait(row) if row is not None else ""

    def is_in(self, value: object, row: TensorId) -> bool:
        """Return whether a container has a tensor: `h` in `(h, c)` of `self.rnn(self.embed(x), (h, c))`."""
        return any(is_tensor(each) and self.row(each) == row for each in items_of(value)[:_MOST_PARTS])

    @property
    def is_of_backward(self) -> bool:
        """Return whether `loss.backward()` failed within, over a gradient that is no expression of a line."""
        errors = self.queries.trace.errors
        return len(errors) > 0 and refused_gradient(errors[-1].message) is not None

    def names(self, row: TensorId) -> list[AccessPath]:
        """Return the names of a tensor, best first, else those of tensors that share its storage."""
        objects = self.by_row.get(row) or self._by_base.get(self.queries.base(row), [])
        found = [name for value in objects for name in self.walk.names(value)]
        return sorted(found, key=lambda name: name.rank)

    def is_registered(self, row: TensorId) -> bool:
        """Return whether a tensor is a parameter or buffer by a name that it has."""
        return any(name.last.kind in ("parameter", "buffer") for name in self.names(row))

    def frame_of(self, site: Site | None) -> int:
        """Return the frame that is running the function of a site; -1 for none."""
        for number, frame in enumerate(self.frames):
            code = frame.f_code
            name = "" if code.co_name == "<module>" else code.co_qualname
            if site is not None and code.co_filename == site.file and name == site.function:
                return number
        return -1

    def has_argument_on(self, frame: int, device: str) -> bool:
        """Return whether an argument of a frame's function is, or contains, a tensor on a device."""
        code, variables = self.frames[frame].f_code, self.frames[frame].f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return any(self._is_on(variables.get(name), device) for name in code.co_varnames[:count])

    def _is_on(self, value: object, device: str, depth: int = 2) -> bool:
        if is_tensor(value):
            return self.trait_of(value) in (device, "")
        return depth > 0 and any(self._is_on(item, device, depth - 1) for item in items_of(value))

    def siblings(self, names: list[AccessPath]) -> Iterator[Any]:
        """Yield the tensors beside a named one: of the same frame, dict, list or object that is no module."""
        for name in names:
            owner = name.last.owner
            if owner is None:
                yield from (value for value in self.variables(name.frame).values() if is_tensor(value))
            for value in (*name.objects[-2:-1], *name.objects[:-1]):  # its owner first
                if not kinds.is_module(value) and not kinds.is_optimizer(value):
                    yield from (reference.value for reference in members(value) if is_tensor(reference.value))

    def beside(self, name: AccessPath) -> Iterator[AccessPath]:
        """Yield the names of the other tensors of a tensor's owner."""
        for reference in members(name.last.owner):
            if is_tensor(reference.value) and reference.value is not name.last.value:
                yield name.beside(reference)

    def variables(self, frame: int) -> dict[str, Any]:
        return {**self.frames[frame].f_locals, **self._lost[frame]} if 0 <= frame < len(self.frames) else {}

    def scope(self, frame: int) -> Scope:
        own = Scope.of(self.frames[frame]) if frame >= 0 else Scope({}, {})
        return Scope(self.variables(frame), own.globals) if frame >= 0 and self._lost[frame] else own
