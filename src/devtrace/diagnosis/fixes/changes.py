"""The code that a fix writes at an anchor to move something: one of three changes.

    OwnLines          model.to(device)    batch["x"] = batch["x"].to(device)
    EachOf            self.state = [each.to(device) for each in self.state]
    Within            torch.cat([a, b]) becomes torch.cat([a, b.to(device)])

Instead of `to(device)` it may be another line's call that is repeated: `cuda()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.anchors import Anchor
from devtrace.diagnosis.fixes.fix import Fix, Moved, suggested
from devtrace.source.element_types import CASTS
from devtrace.source.object_walk import is_tensor, items_of

_NAMES: Final = ("each", "part")


def moving(target: str) -> str:
    """Return `to(device)`; `half()` for `torch.float16`."""
    methods = {f"torch.{dtype}": method for method, dtype in CASTS.items()}
    return f"{methods[target]}()" if target in methods else f"to({target})"


@dataclass(frozen=True)
class OwnLines:
    """A line for each path; a module is moved in place."""

    paths: tuple[str, ...]
    is_module: bool = False

    @classmethod
    def of(cls, *names: AccessPath) -> OwnLines:
        paths = tuple(name.code for name in names if name.code)
        return cls(paths, bool(names) and access_paths.is_module(names[0].last.value))

    def texts(self, anchor: Anchor, call: str) -> list[str]:
        return [f"{path}.{call}" if self.is_module else f"{path} = {path}.{call}" for path in self.paths]


@dataclass(frozen=True)
class EachOf:
    """A line that moves all tensors of a list, tuple or dictionary, at any depth."""

    path: str
    value: Any

    def texts(self, anchor: Anchor, call: str) -> list[str]:
        new = "" if is_tensor(self.value) else self._moved(self.path, self.value, call)
        return [f"{self.path} = {new}"] if new else []

    def _moved(self, code: str, value: Any, call: str, depth: int = 0) -> str:
        """Return the code that moves a container; empty unless it has only tensors."""
        if is_tensor(value):
            return f"{code}.{call}"
        kind, parts = type(value), items_of(value)
        if not parts or depth == len(_NAMES):
            return ""
        name = _NAMES[depth]
        inner = {self._moved(name, part, call, depth + 1) for part in parts}
        text = inner.pop()
        if inner or not text:
            return ""
        if kind is dict:
            return f"{{key: {text} for key, {name} in {code}.items()}}"
        return f"[{text} for {name} in {code}]" if kind is list else f"tuple({text} for {name} in {code})"


@dataclass(frozen=True)
class Within:
    """Expressions of a statement, each moved where it stands; `devices` are those of the nodes if they differ."""

    nodes: tuple[ast.expr, ...]
    devices: tuple[str, ...] = ()

    def texts(self, anchor: Anchor, call: str) -> list[str]:
        calls = [moving(device) for device in self.devices] or [call] * len(self.nodes)
        return [anchor.code.called_on(*each) for each in zip(self.nodes, calls, strict=True)]


@dataclass(frozen=True)
class Proposal:
    """A change at an anchor, to a device as code writes it; or by the `call` of another line."""

    anchor: Anchor
    change: OwnLines | EachOf | Within
    device: str
    call: str = ""

    @property
    def texts(self) -> list[str]:
        call = self.call or (moving(self.device) if self.device else "")
        return self.change.texts(self.anchor, call) if call else []

    @property
    def code(self) -> str:
        """Return the code for a fix's help text."""
        return next(iter(self.texts), "")

    def edit(self) -> Edit | None:
        texts = self.texts
        if isinstance(self.change, Within):
            return self.anchor.code.all_replaced(list(zip(self.change.nodes, texts, strict=True))) if texts else None
        return self.anchor.edit(*texts) if texts else None

    def fixes(self, help: str, moved: Iterable[Moved]) -> Iterator[Fix]:
        """Yield the fix with its words and what it moves, if it can be written."""
        return suggested(help, self.edit(), moved=moved)
