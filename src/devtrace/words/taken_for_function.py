"""Modules that a user may take for a function: `devtrace.trace()` leads on to `devtrace.record()`."""

from types import ModuleType
from typing import Any, NoReturn


class TakenForFunction(ModuleType):
    """Module that raises what to write instead when it is called."""

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        from devtrace.words.errors import UsageError

        raise UsageError.of("not-a-function", name=self.__name__.rpartition(".")[2])
