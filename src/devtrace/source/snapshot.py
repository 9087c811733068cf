"""What was there when a recording ended, beside what ran: all that diagnosis knows of the program itself.

snapshot.objects         # stand-ins, made when a rule first asks
snapshot.let_go()        # from here on nothing of the program is held
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType
from typing import Any, Final, TypeVar

from devtrace.source.freeze import Freezer, accelerators
from devtrace.source.live_objects import CellText, Evidence, forget_locals
from devtrace.source.parsing import text_of
from devtrace.source.safe_values import instance_dict
from devtrace.source.stand_ins import Frame
from devtrace.source.user_code import owner_of

Fact = TypeVar("Fact")
Names = Mapping[str, Any]

_MENTIONED: Final = re.compile(r"""[^\W\d]\w*|(?<=")[^"'\n]{1,60}(?=")|(?<=')[^"'\n]{1,60}(?=')""")
"""Names in a text, and the texts in it."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Stand-ins. `frames`: of the error, innermost first.

    `names`: the user's variables; None where nobody knows them. `modules`: the names of the user's modules, by file.
    `accelerators`: those of the process, simulated ones too.
    """

    frames: tuple[Frame, ...] = ()
    names: Names | None = None
    modules: Mapping[str, Names] = field(default_factory=dict)
    accelerators: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """`sites`: of the frames of the error, innermost first, rows of the trace.

    `around`: where an op of a thread raised, the rows of the sites around it, innermost first; its frames are gone.
    `cells`: those that ran so far, oldest first. `facts`: what observers of the recording noted, asked for by class.
    `went_on`: ops that raised, of which the program caught the error and went on.
    """

    freeze: Callable[[], Objects] = Objects
    sites: tuple[int, ...] = ()
    around: tuple[int, ...] = ()
    cells: tuple[CellText, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    facts: tuple[object, ...] = ()
    went_on: frozenset[int] = frozenset()

    @cached_property
    def objects(self) -> Objects:
        return self.freeze()

    def let_go(self) -> None:
        """Keep the stand-ins that were asked for, and nothing of the program."""
        vars(self).setdefault("objects", Objects())
        vars(self)["freeze"] = Objects

    def facts_of(self, kind: type[Fact]) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if isinstance(fact, kind))


def frozen(
    frames: Sequence[FrameType],
    names: Names | None,
    row_of: Callable[[object], int | None],
    files: Iterable[str],
) -> Objects:
    """Freeze the variables of an error's frames, innermost first, and the user's; `files`: those that ran."""
    modules = _modules_of({file for file in files if owner_of(file) == "user"})
    sources = {*(frame.f_code.co_filename for frame in frames), *modules, *files}
    freezer = Freezer(row_of, {word for file in sources for word in _MENTIONED.findall(text_of(file))})
    stand_ins = [_frozen_frame(freezer, frame) for frame in reversed(frames)][::-1]
    variables = freezer.namespace(names, whole=True) if names is not None else None
    others = {file: freezer.namespace(members, whole=True) for file, members in modules.items()}
    freezer.fill()
    for frame, stand_in in zip(frames, stand_ins, strict=True):
        stand_in.f_locals.update(_keys_in(frame.f_locals, freezer.keys))
        forget_locals(frame)
    return Objects(tuple(stand_ins), variables, others, accelerators())


def _frozen_frame(freezer: Freezer, frame: FrameType) -> Frame:
    """Return a frame whose variables, and the names that its code mentions, are nearest."""
    code, names = frame.f_code, freezer.namespace(frame.f_globals, whole=True)
    if frame.f_locals is frame.f_globals:
        variables = names
    else:
        pairs = dict(frame.f_locals).items()  # `@py_assert1` is pytest's, of which no program can speak
        variables = {name: freezer.of(value) for name, value in pairs if not name.startswith("@")}
    for name in code.co_names:
        if name in frame.f_globals:
            freezer.of(frame.f_globals[name])
    return Frame(freezer.code(code), variables, names)


def _keys_in(variables: Names, keys: Collection[str]) -> dict[str, str]:
    """Return the variables whose text is a key of some dictionary: `name` of `shadow[name]`."""
    return {name: value for name, value in dict(variables).items() if type(value) is str and value in keys}


def _modules_of(files: set[str]) -> dict[str, Names]:
    """Return the names of the imported modules that are in some files."""
    namespaces = (instance_dict(module) for module in list(sys.modules.values()))
    return {file: names for names in namespaces if type(file := names.get("__file__")) is str and file in files}
