"""All strategies in the order in which they are tried, and why each comes where it does.

A good PyTorch programmer would take the first that fits: what was meant comes before what works. So

    1. a line that is there and says it wrongly     no line is added, no tensor is moved twice
    2. where its neighbours were moved              it reads as the lines beside it do
    3. where it was attached, bound or made         one line moves it for all that use it
    4. where it fails                               that always works, and moves it each time

A strategy is asked for its causes alone: each of them is a claim about what happened.
"""

from collections.abc import Iterator
from typing import Final, get_args

from devtrace.diagnosis.fixes import at_attachment, at_binding, at_move, at_use, change_move
from devtrace.diagnosis.fixes.fix import Ranked
from devtrace.diagnosis.fixes.pass_device_to_factory import ask_the_hook, move_in_package, pass_device_to_factory
from devtrace.diagnosis.fixes.register_on_module import move_what_a_package_keeps, register_on_module
from devtrace.diagnosis.slugs import MOVES, CauseSlug
from devtrace.features import find

EVERY: Final[tuple[CauseSlug, ...]] = get_args(CauseSlug)
_OF_DEVICES: Final = (
    Ranked(ask_the_hook, ("asked-at-rest",), "the line stays, and asks what it meant to ask"),
    Ranked(change_move.keep_moved_result, ("never-moved",), "the move is there, and only its result was lost"),
    Ranked(change_move.copy_after_move, ("stale-copy",), "two lines change their order, and nothing is added"),
    Ranked(
        register_on_module, ("not-registered", "stale-copy"), "from then on every move of the module takes it along"
    ),
    Ranked(at_move.bring_module_back, ("wrong-device",), "a module was sent away for a while, perhaps on purpose"),
    Ranked(change_move.change_the_word, ("wrong-device",), "one word differs from what the program says elsewhere"),
    Ranked(change_move.leave_out_move, ("wrong-device",), "a copy needs no trip to the CPU"),
    Ranked(change_move.move_to_expected_trait, ("wrong-device",), "a move that is there gets the right device"),
    Ranked(at_move.move_optimizer_state, ("never-moved", "stale-copy"), "it goes where its parameters went"),
    Ranked(at_move.move_with_others, ("never-moved",), "in that very expression another part of it is moved"),
    Ranked(at_move.move_beside_neighbour, ("never-moved",), "the line above moves what came with it"),
    Ranked(at_attachment.move_below_attachment, ("attached-after-move",), "moving the whole takes all parts along"),
    Ranked(at_attachment.move_as_attached, ("attached-after-move",), "the part alone, where the whole is not at hand"),
    Ranked(at_attachment.move_as_sibling, ("never-moved",), "the attribute beside it is moved as it is made"),
    Ranked(
        at_binding.move_below_binding, ("attached-after-move", "never-moved", "stale-copy"), "once, where code gets it"
    ),
    Ranked(at_attachment.move_as_attached, ("never-moved",), "a call made it, so that no line above could move it"),
    Ranked(
        at_attachment.move_where_it_is_built,
        ("attached-after-move", "never-moved"),
        "the function that made it knows no device, but the one that called that does",
    ),
    Ranked(move_what_a_package_keeps, ("not-registered",), "the class is a package's, so nothing can be registered"),
    Ranked(at_binding.move_in_its_cell, ("never-moved",), "another cell made it, and others use it too", "device"),
    Ranked(at_use.move_above_in_cell, ("attached-after-move", "never-moved"), "another cell made it, without a device"),
    Ranked(
        pass_device_to_factory,
        ("created-without-device", "default-device", "wrong-device", "python-number"),
        "what a computation makes is best made where it is needed",
    ),
    Ranked(at_attachment.move_as_attached, ("created-without-device",), "it is kept, and no factory in sight made it"),
    Ranked(
        at_binding.move_where_made,
        (
            "never-moved",
            "stale-copy",
            "created-without-device",
            "python-number",
            "target-dtype",
            "autocast-off",
            "numpy-boundary",
        ),
        "a variable of the function itself, whose value no attribute keeps",
    ),
    Ranked(move_in_package, ("never-moved",), "a line of a package is not the user's to change: words"),
    Ranked(pass_device_to_factory, ("never-moved", "target-dtype"), "what is only set up may be wanted on the CPU too"),
    Ranked(at_use.move_at_use, EVERY, "it mends the line, in each run of it anew"),
    Ranked(at_use.move_before_update, EVERY, "what is updated in place stays where it is put"),
    Ranked(at_use.move_each_before_use, EVERY, "a list that the line reads as a whole has no expression for each part"),
    Ranked(at_use.move_kept_above_in_cell, EVERY, "another cell's object keeps it, and no expression of a line is it"),
    Ranked(at_move.move_what_it_missed, EVERY, "it is far from where it fails, and goes where its module went"),
)


def _with_features() -> Iterator[Ranked]:
    """Yield the strategies of features too: before all, or right after the strategy that a feature's key names."""
    yield from find("strategy", "first") or ()
    for ranked in _OF_DEVICES:
        yield ranked
        yield from find("strategy", ranked.strategy.__name__) or ()


ORDER: Final = tuple(_with_features())
FOR_EVERY_CAUSE: Final = tuple(ranked for ranked in ORDER if ranked.causes == EVERY)


def of_cause(cause: CauseSlug, trait: str) -> Iterator[Ranked]:
    """Yield the strategies that are a cause's own."""
    device_cause, of_trait = MOVES.get(cause, cause), (ranked for ranked in ORDER if ranked.trait in ("", trait))
    return (ranked for ranked in of_trait if device_cause in ranked.causes and ranked.causes != EVERY)
