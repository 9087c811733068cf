"""The fix that fits the code: the right edit at the right line, in the order of preference of good PyTorch.

`device=x.device`, a buffer, a ModuleList, moving after attaching; a device by name only where the code has that name
already. Each strategy looks for what it needs (the factory's call, the assignment, a device in scope) and gives nothing
without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.bring_module_back import bring_module_back
from devtrace.diagnosis.fixes.copy_after_move import copy_after_move
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.keep_moved_result import keep_moved_result
from devtrace.diagnosis.fixes.move_at_use import move_at_use
from devtrace.diagnosis.fixes.move_before_update import move_before_update
from devtrace.diagnosis.fixes.move_below_binding import move_below_binding
from devtrace.diagnosis.fixes.move_beside_neighbour import move_beside_neighbour
from devtrace.diagnosis.fixes.move_in_package import move_in_package
from devtrace.diagnosis.fixes.move_optimizer_state import move_optimizer_state
from devtrace.diagnosis.fixes.move_to_expected_device import move_to_expected_device
from devtrace.diagnosis.fixes.move_where_attached import move_as_attached, move_below_attachment
from devtrace.diagnosis.fixes.move_where_made import move_where_made
from devtrace.diagnosis.fixes.pass_device_to_factory import pass_device_to_factory
from devtrace.diagnosis.fixes.register_on_module import register_on_module

Strategy = Callable[[Case, Verdict], Fix | None]

STRATEGIES: Final[dict[str, tuple[Strategy, ...]]] = {
    "attached-after-move": (move_below_attachment, move_as_attached, move_below_binding),
    "not-registered": (register_on_module,),
    "created-without-device": (pass_device_to_factory, move_where_made),
    "never-moved": (keep_moved_result, move_beside_neighbour, move_below_binding, move_where_made, move_in_package),
    "stale-copy": (copy_after_move, move_optimizer_state, move_below_binding, move_where_made),
    "wrong-device": (bring_module_back, move_to_expected_device, pass_device_to_factory),
    "default-device": (pass_device_to_factory,),
}
LAST: Final[tuple[Strategy, ...]] = (move_at_use, move_before_update)

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
