"""Modes of torch that note what a program calls, and pass it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode


class Ops(TorchDispatchMode):
    """Notes something of each operator and its arguments, before it runs: by default its name."""

    def __init__(self, note: Callable[[Any, Any, Any], Any] = lambda func, args, kwargs: str(func)) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.note = note
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(self.note(func, args, kwargs))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    """Notes each function of torch by its name, by default with the class or module that it is of."""

    def __init__(self, name: Callable[[Any], str] = lambda func: resolve_name(func) or str(func)) -> None:
        super().__init__()
        self.name = name
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(self.name(func))
        return func(*args, **(kwargs or {}))
