"""The failing moment with its live objects: which names lead to a tensor of the trace, and what stands beside it."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Any

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath, Reference, Walk
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source.reading import instance_dict


@dataclass(frozen=True)
class FailureSnapshot:
    """The frames of an error, innermost first, and what their variables lead to."""

    queries: TraceQueries

    @cached_property
    def frames(self) -> list[FrameType]:
        return [frame for _, frame in self.queries.frames]

    @cached_property
    def walk(self) -> Walk:
        live = self.queries.live
        variables = [access_paths.roots(frame) for frame in self.frames]
        if live is not None and live.namespace is not None:
            known = any(frame.f_globals is live.namespace for frame in self.frames)
            if not known:
                variables.append({name: (value, "global") for name, value in live.namespace.items() if name[:1] != "_"})
        return Walk(variables)

    @cached_property
    def _by_row(self) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = defaultdict(list)
        for tensor in self.walk.tensors:
            row = self.row(tensor)
            if row is not None:
                found[row].append(tensor)
        return found

    @cached_property
    def _by_base(self) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = defaultdict(list)
        for row, tensors in self._by_row.items():
            found[self.queries.base(row)] += tensors
        return found

    def row(self, tensor: object) -> int | None:
        """The trace's row of a live tensor."""
        live = self.queries.live
        row = live.row_of(tensor) if live is not None else None
        return row if row is not None and 0 <= row < len(self.queries.trace.tensors) else None

    def device_of(self, tensor: object) -> str:
        """Where a live tensor was when the recording ended; empty when the trace has not seen it."""
        row = self.row(tensor)
        return "" if row is None else self.queries.device(row)

    def names(self, row: int) -> list[AccessPath]:
        """The names of a tensor, best first; of the tensor it is a view of, if itself has none."""
        objects = self._by_row.get(row) or self._by_base.get(self.queries.base(row), [])
        found = [name for value in objects for name in self.walk.names(value)]
        return sorted(found, key=lambda name: name.rank)

    @cached_property
    def reachable_rows(self) -> set[int]:
        """The rows that something lasting leads to."""
        return set(self._by_row)

    def text(self, holds: tuple[Reference, ...]) -> str:
        return self.walk.text(holds)

    def frame_of(self, site: Site) -> int | None:
        """The frame that is running the function a site is in."""
        for number, frame in enumerate(self.frames):
            code = frame.f_code
            name = "" if code.co_name == "<module>" else code.co_qualname
            if code.co_filename == site.file and name == site.function:
                return number
        return None

    def given_tensors(self, frame: int, expected_device: str) -> bool:
        """Whether a frame's function was handed a tensor of a device."""
        return any(self._is_on(value, expected_device) for value in self._given(frame))

    def _given(self, frame: int) -> list[object]:
        """The arguments of a frame's function, as they are now."""
        code, held = self.frames[frame].f_code, self.frames[frame].f_locals
        given = code.co_argcount + code.co_kwonlyargcount
        given += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return [held.get(name) for name in code.co_varnames[:given]]

    def _is_on(self, value: object, expected_device: str, depth: int = 2) -> bool:
        if access_paths.is_tensor(value):
            return self.device_of(value) in (expected_device, "")
        if depth and type(value) in (list, tuple):
            return any(self._is_on(item, expected_device, depth - 1) for item in value)  # type: ignore[attr-defined]
        if depth and type(value) is dict:
            return any(self._is_on(item, expected_device, depth - 1) for item in value.values())
        return False

    def calls(self, frame: int, function: str) -> bool:
        """Whether the code of a frame calls a function, by its name."""
        name = function.rpartition(".")[2]
        return bool(name) and name in self.frames[frame].f_code.co_names

    def siblings(self, called: list[AccessPath]) -> Iterator[Any]:
        """The tensors that stand beside a named one: in the same dict, list or tuple, then in the same frame."""
        for name in called:
            owner = name.last.owner
            if owner is None:
                yield from (value for value in self.variables(name.frame).values() if access_paths.is_tensor(value))
            elif not access_paths.is_module(owner):
                yield from self.walk.held_by(owner)
            for value in name.objects[:-1]:
                yield from self.walk.held_by(value)

    def beside(self, name: AccessPath) -> Iterator[AccessPath]:
        """The names of the other tensors that the owner of a named one holds."""
        for value, hold in self.walk.holds_of(name.last.owner):
            if access_paths.is_tensor(value) and value is not name.objects[-1]:
                holds = (*name.holds[:-1], hold)
                yield AccessPath(holds, (*name.objects[:-1], value), self.text(holds))

    def variables(self, frame: int) -> dict[str, Any]:
        """A frame's own variables."""
        return dict(self.frames[frame].f_locals) if 0 <= frame < len(self.frames) else {}


def registered(module: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The tensors that `.to()` of a module moves, with their paths; no code of the module's runs."""
    own = instance_dict(module)
    for table in ("_parameters", "_buffers"):
        for name, value in _items(own.get(table)):
            if access_paths.is_tensor(value):
                yield f"{path}{name}", value
    if depth < access_paths.MOST_DEPTH * 4:
        for name, value in _items(own.get("_modules")):
            if access_paths.is_module(value):
                yield from registered(value, f"{path}{name}.", depth + 1)


def _items(table: Any) -> list[tuple[Any, Any]]:
    return list(dict.items(table)) if issubclass(type(table), dict) else []
