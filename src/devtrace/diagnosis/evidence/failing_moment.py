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
from devtrace.source.comprehension_iteration import ERRORS_DROP_THEM, lost_variables
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
    """Ops and their lines, for each function of a file; `execution_order.py` fills this in."""

    @cached_property
    def frames(self) -> list[Frame]:
        return [frame for _, frame in self.queries.frames]

    @property
    def namespace(self) -> Mapping[str, Any]:
        """Return the user's variables, else the globals of the outermost frame."""
        names = self.queries.snapshot.objects.names
        return names if names is not None else self.frames[-1].f_globals if self.frames else {}

    @cached_property
    def walk(self) -> Walk:
        variables = [access_paths.roots(frame) for frame in self.frames]
        for of_frame, of_comprehensions in zip(variables, self._comprehension_variables, strict=True):
            of_frame.update((name, (value, "variable")) for name, value in of_comprehensions.items())
        names = self.queries.snapshot.objects.names
        if names is not None and not any(frame.f_globals is names for frame in self.frames):
            variables.append({name: (value, "global") for name, value in names.items() if name[:1] != "_"})
        return Walk(variables)

    @cached_property
    def whole_walk(self) -> Walk:
        """Walk from all of the user's names: a statement that runs alone, as of `devtrace fix`, reads few of them."""
        public = [(name, value) for name, value in self.namespace.items() if name[:1] != "_" and may_lead(value)]
        unseen = [(name, value) for name, value in public if id(value) not in self.walk.references]
        return Walk([*self.walk.frames, {name: (value, "global") for name, value in unseen}]) if unseen else self.walk

    @cached_property
    def hooks(self) -> dict[int, Hook]:
        """Hooks that bring inputs or weights to a device, by the ids of the modules that variables lead to."""
        modules = self.whole_walk.of_kind(kinds.is_module)
        return {id(module): hook for module in modules if (hook := hook_of(module)) is not None}

    @cached_property
    def _comprehension_variables(self) -> list[dict[str, Any]]:
        """Variables of frames' comprehensions, `x` of `[f(x) for x in xs]`: since Python 3.12 an error drops them."""
        if not ERRORS_DROP_THEM:
            return [{} for _ in self.frames]
        places = (self.queries.source_node(site) for site, _ in self.queries.frames)
        inner_frames = [None, *self.frames]
        frames = zip(self.frames, places, inner_frames, strict=False)
        return [lost_variables(frame, (at.source, at.node), inner, self.trait_of) for frame, at, inner in frames]

    @cached_property
    def by_row(self) -> dict[TensorId, list[Any]]:
        """Tensors that variables lead to, by row."""
        tensors: dict[TensorId, list[Any]] = defaultdict(list)
        for tensor in self.walk.tensors:
            row = self.row(tensor)
            if row is not None:
                tensors[row].append(tensor)
        return tensors

    @cached_property
    def _by_base(self) -> dict[TensorId, list[Any]]:
        sharing_storage: dict[TensorId, list[Any]] = defaultdict(list)
        for row, tensors in self.by_row.items():
            sharing_storage[self.queries.base(row)] += tensors
        return sharing_storage

    def of(self, queries: TraceQueries) -> FailingMoment:
        """Return the same moment for queries of the same trace by another trait; the objects are walked once."""
        other = FailingMoment(queries, self.ways)
        if "walk" in vars(self) or self.frames:  # what cached_property keeps
            vars(other)["walk"] = self.walk
        return other

    def row(self, tensor: object) -> TensorId | None:
        """Return the trace's row of a tensor."""
        row = tensor._row if is_tensor(tensor) else -1  # type: ignore[attr-defined]
        return TensorId(row) if 0 <= row < len(self.queries.bases) else None

    def trait_of(self, value: object) -> str:
        """Return the device, or dtype, that a tensor had as the recording ended: "cuda:0" of `x`, "" of `3`.

        For a module that of its first parameter. If no op has used the parameter, its own attribute tells.
        """
        parameters = (tensor for _, tensor in registered(value) if kinds.is_parameter(tensor))
        tensor = next(parameters, None) if kinds.is_module(value) else value
        row = self.row(tensor)
        if row is None and type(tensor) is Parameter:  # a model of an earlier cell
            return tensor._device if self.queries.by.name == "device" else tensor._dtype
        return self.queries.trait(row) if row is not None else ""

    def is_in(self, value: object, row: TensorId) -> bool:
        """Return whether a container has a tensor: `h` in `(h, c)` of `self.rnn(self.embed(x), (h, c))`."""
        return any(is_tensor(item) and self.row(item) == row for item in items_of(value)[:_MOST_PARTS])

    @property
    def is_of_backward(self) -> bool:
        """Return whether torch refused a gradient within `loss.backward()`: no line has an expression for it."""
        errors = self.queries.trace.errors
        return len(errors) > 0 and refused_gradient(errors[-1].message) is not None

    def names(self, row: TensorId) -> list[AccessPath]:
        """Return the names of a tensor, best first, else those of tensors that share its storage."""
        tensors = self.by_row.get(row) or self._by_base.get(self.queries.base(row), [])
        names = [name for tensor in tensors for name in self.walk.names(tensor)]
        return sorted(names, key=lambda name: name.rank)

    def is_registered(self, row: TensorId) -> bool:
        """Return whether one of a tensor's names ends at a module's parameter or buffer."""
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
        return any(self._has_tensor_on(variables.get(name), device) for name in code.co_varnames[:count])

    def _has_tensor_on(self, value: object, device: str, depth: int = 2) -> bool:
        if is_tensor(value):
            return self.trait_of(value) in (device, "")  # one that no op has used may be there
        return depth > 0 and any(self._has_tensor_on(item, device, depth - 1) for item in items_of(value))

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
        is_there = 0 <= frame < len(self.frames)
        return {**self.frames[frame].f_locals, **self._comprehension_variables[frame]} if is_there else {}

    def scope(self, frame: int) -> Scope:
        scope = Scope.of(self.frames[frame]) if frame >= 0 else Scope({}, {})
        is_extended = frame >= 0 and bool(self._comprehension_variables[frame])
        return Scope(self.variables(frame), scope.globals) if is_extended else scope
