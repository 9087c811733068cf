"""Frames of an error, from the outermost that still runs to the one that raised, each with its instruction.

A list of our own: the user's traceback is read and never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import torch

from devtrace.recording.columns import sites
from devtrace.recording.columns.process_history import ErrorMark, mark_of
from devtrace.recording.columns.sites import LIBRARY, USER
from devtrace.recording.context.errors_before_dispatch import asked_for_an_array, joined, knows_torch
from devtrace.recording.context.module_tree import is_module
from devtrace.runtime.quiet import is_tensor, shape_of
from devtrace.runtime.torch_names import take
from devtrace.runtime.tracebacks import entries_without_ours, outward
from devtrace.source import comprehension_iteration, parsing
from devtrace.source.live_objects import forget_locals
from devtrace.source.safe_values import Scope

CALLS_OF_MODULES: Final[tuple[CodeType, ...]] = tuple(
    take(f"nn.Module.{name}", "calls", instead=take).__code__ for name in ("_call_impl", "_wrapped_call_impl")
)
"""Functions of torch's that only hand a module's call on to its forward."""
HOOKED_CALL: Final = next(
    (code for code in CALLS_OF_MODULES[0].co_consts if isinstance(code, CodeType) and code.co_name == "inner"), None
)
"""Function in `_call_impl` that calls the forward of a module with hooks: they may have changed the arguments."""

_TORCH: Final = Path(torch.__file__).parent
_KERNELS: Final = tuple(
    f"{_TORCH / name}"
    for name in ("_prims", "_prims_common", "_refs", "_decomp", "_library", "_ops.py", "_meta_registrations.py")
)
_DISPATCHERS: Final = ("__torch_function__", "__torch_dispatch__")


@dataclass(frozen=True, slots=True)
class Level:
    """One frame, at the instruction that it runs."""

    frame: FrameType
    instruction: int

    @property
    def kind(self) -> int:
        """USER, LIBRARY, or else code whose variables are nobody's to look through."""
        return sites.files[self.frame.f_code.co_filename]

    @property
    def is_readable(self) -> bool:
        return self.kind in (USER, LIBRARY)


@dataclass(frozen=True, slots=True)
class Stack:
    """Levels of an error, outermost first; `errors` are the marks of the exceptions that it reached the top by."""

    levels: tuple[Level, ...]
    errors: frozenset[ErrorMark | None] = frozenset()

    @classmethod
    def of(cls, path: Sequence[BaseException]) -> Stack:
        """Return the frames that lead to the last exception of a path, and to those that were raised in its place."""
        entries = joined(map(entries_without_ours, path))
        running = outward(entries[0].tb_frame.f_back if entries else None)  # the callers of the frame that caught it
        outer_levels = [Level(frame, frame.f_lasti) for frame in running][::-1]
        levels = _without_kernels((*outer_levels, *(Level(entry.tb_frame, entry.tb_lasti) for entry in entries)))
        if asked_for_an_array(path[-1]) is not None:
            levels = _without_helpers(levels)
        return cls(levels, frozenset(map(mark_of, path)))

    def sited(self) -> list[tuple[int, FrameType]]:
        """Return the frames that are neither torch's nor Python's, innermost first, with their sites."""
        return sites.of_frames((level.frame, level.instruction) for level in self.levels)

    def scope(self, depth: int, trait: Callable[[Any], object]) -> Scope:
        """Return a level's variables; for the frame of a comprehension also those of the function around it."""
        frame = self.levels[depth].frame
        outer = (level.frame for level in self.levels[:depth][::-1])
        enclosing = next((caller for caller in outer if frame.f_code in caller.f_code.co_consts), None)
        is_comprehension = frame.f_code.co_name in comprehension_iteration.FRAMES and enclosing is not None
        inherited = enclosing.f_locals if is_comprehension and enclosing is not None else {}
        of_turn = self.variables_of_turn(depth, trait)
        scope = Scope.of(frame)
        return Scope({**inherited, **scope.locals, **of_turn}, scope.globals) if is_comprehension or of_turn else scope

    def variables_of_turn(self, depth: int, trait: Callable[[Any], object]) -> dict[str, Any]:
        """Return the variables that a level's comprehensions had in the turn that failed, which the error took along.

        A tensor without dimensions goes with tensors of any device, so it has no trait.
        """
        if not comprehension_iteration.ERRORS_DROP_THEM:
            return {}
        inner = self.levels[depth + 1].frame if depth + 1 < len(self.levels) else None
        level = self.levels[depth]
        place = parsing.node_of(level.frame.f_code, level.instruction)
        return comprehension_iteration.lost_variables(
            level.frame, place, inner, lambda value: trait(value) if is_tensor(value) and shape_of(value) else None
        )

    def forget_locals(self) -> None:
        for level in self.levels:
            forget_locals(level.frame)


def _without_kernels(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Cut off the inner frames of torch's ops and modes in Python: their variables are the op's, not the program's."""
    end = len(levels)
    for index in reversed(range(len(levels))):
        if levels[index].is_readable:
            break
        code = levels[index].frame.f_code
        if code.co_filename.startswith(_KERNELS) or code.co_name in _DISPATCHERS:
            end = index
    return levels[:end]


def _without_helpers(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Cut off the frames inside the line that gave numpy a tensor: numpy's, and those of torch that numpy calls."""
    users = [at for at, level in enumerate(levels) if level.is_readable and knows_torch(level.frame)]
    inner = range(users[-1] + 1, len(levels)) if users else range(0)
    helpers = (at for at in inner if levels[at].is_readable or levels[at].frame.f_code.co_name == "__array__")
    return levels[: next(helpers, len(levels))]


def module_of_method(code: CodeType, variables: Mapping[str, Any]) -> Any:
    """Return the module whose method a frame runs; None for a constructor and for code that is no method."""
    owner = variables.get(code.co_varnames[0]) if code.co_argcount and code.co_name != "__init__" else None
    return owner if is_module(owner) else None
