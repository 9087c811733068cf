"""Modes of torch that note what a program calls, and pass it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode


class Ops(TorchDispatchMode):
    """Notes something of each operator and its arguments before it runs, by default its name, or of its result."""

    def __init__(
        self,
        note: Callable[[Any, Any, Any], Any] = lambda func, args, kwargs: str(func),
        after: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.note, self.after = note, after
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.after is None:
            self.seen.append(self.note(func, args, kwargs))
        out = func(*args, **(kwargs or {}))
        if self.after is not None:
            self.seen.append(self.after(func, out))
        return out


class Functions(TorchFunctionMode):
    """Notes each function of torch by its name, by default with the class or module that it is of."""

    def __init__(self, name: Callable[[Any], str] = lambda func: resolve_name(func) or str(func)) -> None:
        super().__init__()
        self.name = name
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(self.name(func))
        return func(*args, **(kwargs or {}))
