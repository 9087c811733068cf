"""The fix that fits the code: the right edit at the right line, in the order of preference of good PyTorch.

`device=x.device`, a buffer, a ModuleList, moving after attaching; a device by name only where the code has that name
already. Each strategy looks for what it needs (the factory's call, the assignment, a device in scope) and gives nothing
without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.creation_and_use import (
    ask_for_home,
    at_the_use,
    cast_where_bound,
    give_the_device,
    move_in_theirs,
)
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.held_objects import (
    keep_it_here,
    keep_the_result,
    move_below,
    move_beside,
    state_along,
    swap,
)
from devtrace.diagnosis.fixes.modules import bring_back, move_when_attached, register

Strategy = Callable[[Case, Verdict], Fix | None]

STRATEGIES: Final[dict[str, tuple[Strategy, ...]]] = {
    "attached-after-move": (move_when_attached, move_below),
    "not-registered": (register,),
    "created-without-device": (give_the_device, cast_where_bound),
    "never-moved": (keep_the_result, move_beside, move_below, cast_where_bound, move_in_theirs),
    "stale-copy": (swap, state_along, move_below, cast_where_bound),
    "wrong-device": (bring_back, ask_for_home, give_the_device),
    "default-device": (give_the_device,),
}
LAST: Final[tuple[Strategy, ...]] = (at_the_use, keep_it_here)

WORDS: Final = {
    "attached-after-move": "move the model again after attaching this part",
    "not-registered": "register it as a buffer or a submodule, so that .to() moves it",
    "created-without-device": "create it on the device of the tensor that it meets: device=x.device",
    "never-moved": "move it to the device once, where it is made",
    "stale-copy": "make this copy after the move",
    "wrong-device": "take the device from the tensor that it meets",
    "default-device": "give the device explicitly, or leave the default device alone",
    "unknown": "bring the tensors of this line to one device",
}


REPLICAS: Final = (
    "run one process per GPU with DistributedDataParallel, or use a model that keeps its tensors in torch.nn "
    "parameters; DataParallel cannot replicate this one"
)


def fix(case: Case, verdict: Verdict) -> Fix:
    """The first strategy for the cause that fits the code; words alone when none does."""
    if case.in_a_replica:
        return Fix(REPLICAS)
    if case.snapshot.frames:
        for strategy in (*STRATEGIES.get(verdict.cause, ()), *LAST):
            found = strategy(case, verdict)
            if found is not None:
                return found
    return Fix(WORDS[verdict.cause])
