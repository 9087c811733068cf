"""All strategies in the order in which they are tried, and why each comes where it does.

A good PyTorch programmer would take the first that fits: what was meant comes before what works. So

    1. a line that is there and says it wrongly     no line is added, no tensor is moved twice
    2. where its neighbours were moved              it reads as the lines beside it do
    3. where it was attached, bound or made         one line moves it for all that use it
    4. where it fails                               that always works, and moves it each time

A strategy is asked for its causes alone: each of them is a claim about what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, get_args

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.at_attachment import (
    move_as_attached,
    move_as_registered,
    move_as_sibling,
    move_below_attachment,
)
from devtrace.diagnosis.fixes.at_binding import move_below_binding, move_in_loop, move_where_made
from devtrace.diagnosis.fixes.at_move import (
    bring_module_back,
    move_beside_neighbour,
    move_container,
    move_optimizer_state,
    move_with_others,
)
from devtrace.diagnosis.fixes.at_use import move_above_in_cell, move_at_use, move_before_update
from devtrace.diagnosis.fixes.change_move import (
    change_device_variable,
    copy_after_move,
    keep_moved_result,
    keep_moved_whole,
    leave_out_move,
    move_to_expected_device,
)
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.pass_device_to_factory import move_in_package, pass_device_to_factory
from devtrace.diagnosis.fixes.register_on_module import move_what_a_package_keeps, register_on_module
from devtrace.diagnosis.slugs import CauseSlug

Strategy = Callable[[Case, Verdict], Iterator[Fix]]


class Ranked(NamedTuple):
    """A strategy at its rank: the causes that it is for, and why it comes no later."""

    strategy: Strategy
    causes: tuple[CauseSlug, ...]
    why: str


EVERY: Final[tuple[CauseSlug, ...]] = get_args(CauseSlug)
ORDER: Final = (
    Ranked(keep_moved_result, ("never-moved",), "the move is there, and only its result was lost"),
    Ranked(keep_moved_whole, ("never-moved",), "so it is of a batch that moves itself"),
    Ranked(copy_after_move, ("stale-copy",), "two lines change their order, and nothing is added"),
    Ranked(register_on_module, ("not-registered",), "from then on every move of the module takes it along"),
    Ranked(bring_module_back, ("wrong-device",), "a module was sent away for a while, and may have to be there"),
    Ranked(change_device_variable, ("wrong-device",), "one name is wrong for all that is made with it"),
    Ranked(leave_out_move, ("wrong-device",), "a copy needs no trip to the CPU"),
    Ranked(move_to_expected_device, ("wrong-device",), "a move that is there gets the right device"),
    Ranked(move_optimizer_state, ("never-moved", "stale-copy"), "an optimizer's state goes where its parameters went"),
    Ranked(move_with_others, ("never-moved",), "in that very expression another part of it is moved"),
    Ranked(move_beside_neighbour, ("never-moved",), "the line above moves what came with it"),
    Ranked(move_in_loop, ("never-moved",), "each batch is moved at the top of its round"),
    Ranked(move_as_registered, ("attached-after-move",), "in a loop it holds for each part that is registered"),
    Ranked(move_below_attachment, ("attached-after-move",), "to move the whole again takes all parts along"),
    Ranked(move_as_attached, ("attached-after-move",), "the part alone, where the whole is not at hand"),
    Ranked(move_as_sibling, ("never-moved",), "the attribute beside it is moved as it is made"),
    Ranked(move_below_binding, ("attached-after-move", "never-moved", "stale-copy"), "once, where the code gets it"),
    Ranked(move_what_a_package_keeps, ("not-registered",), "the class is a package's, so nothing can be registered"),
    Ranked(move_above_in_cell, ("attached-after-move", "never-moved"), "another cell made it, without a device"),
    Ranked(
        pass_device_to_factory,
        ("created-without-device", "default-device", "wrong-device"),
        "what a computation makes is best made where it is needed",
    ),
    Ranked(
        move_where_made,
        ("never-moved", "stale-copy", "created-without-device"),
        "a variable of the function itself, whose value no attribute keeps",
    ),
    Ranked(move_in_package, ("never-moved",), "a line of a package is not the user's to change: words"),
    Ranked(pass_device_to_factory, ("never-moved",), "what is only set up may be wanted on the CPU too"),
    Ranked(move_at_use, EVERY, "it mends the line, in each run of it anew"),
    Ranked(move_before_update, EVERY, "what is updated in place stays where it is put"),
    Ranked(move_container, EVERY, "a list of a module has no line of its own that could move each part"),
)
FOR_EVERY_CAUSE: Final = tuple(ranked for ranked in ORDER if ranked.causes == EVERY)


def of_cause(cause: CauseSlug) -> Iterator[Ranked]:
    """Yield the strategies that are a cause's own."""
    return (ranked for ranked in ORDER if cause in ranked.causes and ranked.causes != EVERY)
