"""Classes that stand for one of torch while a simulation runs: a program calls them, and asks what is one of theirs.

patches.set(torch, "device", stand_in(torch.device, make))      # torch.device(0)
"""

from collections.abc import Callable
from typing import Any


def stand_in(
    own: type, make: Callable[..., Any], is_one: Callable[[Any], bool] | None = None, name: str = "", **attributes: Any
) -> type:
    """Return a class whose call is answered by `make`; it equals the class that it stands for, its `own`."""

    class Kind(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs)

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, own) if is_one is None else is_one(value)

        def __eq__(cls, other: object) -> bool:
            return other is cls or other is own

        def __hash__(cls) -> int:
            return hash(own)

    module, _, class_name = (name or f"torch.{own.__name__}").rpartition(".")
    return Kind(class_name, (), {"__module__": module, "__doc__": own.__doc__, "own": own, **attributes})
