"""Where in the user's code: from frames to small integers while recording, from those to spans and text at the end.

A site is the innermost frame that is neither torch's, the standard library's, Jupyter's nor ours. When that frame
lies in an installed package, the site also has a caller: the nearest frame of the user's own code. Site ids are the
process's, not a recording's: a tensor made in one traced cell keeps its birth site when another cell is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Final

from devtrace.source.live_objects import CellText
from devtrace.source.user_code import is_torch_or_ours, owner_of

SKIP, USER, LIBRARY, BOUNDARY = range(4)
NOWHERE: Final = -1

_KINDS: Final = {"hidden": SKIP, "user": USER, "package": LIBRARY}


def _kind_of(filename: str) -> int:
    return USER if filename in _cells else _KINDS[owner_of(filename)]


class _Files(dict[str, int]):
    """Kinds by file name, found out on first look."""

    def __missing__(self, filename: str) -> int:
        kind = self[filename] = _kind_of(filename)
        return kind


@dataclass(frozen=True, slots=True)
class Cell:
    """A notebook cell as it ran: its execution count, the front end's id for it, the code that ran, and the line of the
    cell, as an editor counts, that the code's line 1 is.
    """

    count: int
    cell_id: str
    source: str
    first: int = 1


@dataclass(frozen=True, slots=True)
class Spot:
    """An instruction of a code object; `cell` is what the code's file name meant when the code was first seen."""

    code: CodeType
    instruction: int
    caller: int
    cell: Cell | None


_cells: dict[str, Cell] = {}
_cell_of_code: dict[int, Cell | None] = {}
_spots: list[Spot] = []
_with_caller: dict[tuple[int, int, int], int] = {}

files: Final = _Files()
"""file name -> SKIP, USER, LIBRARY or BOUNDARY."""
known: Final[dict[int, dict[int, int]]] = {}
"""id of a code object (kept alive by its spots) -> instruction -> site, for frames of the user's own code."""


def register_cell(filename: str, count: int, cell_id: str, source: str, first: int = 1) -> None:
    """Say that code objects of this file name, from now on, are the cell with this execution count."""
    _cells[filename] = Cell(count, cell_id, source, first)
    files[filename] = USER


def ran() -> tuple[CellText, ...]:
    """The cells that ran so far, oldest first."""
    known = sorted(_cells.items(), key=lambda item: item[1].count)
    return tuple(
        CellText(file, cell.count, cell.cell_id, cell.source, cell.first) for file, cell in known if cell.count >= 0
    )


def forget_cell(filename: str) -> None:
    """Say that code objects of this file name are no cell's text: what they do is done by the line that runs them."""
    _cells.pop(filename, None)
    files[filename] = SKIP


def mark_boundary(filename: str) -> None:
    """Frames of this file carry a site of their own: a walk may stop there."""
    files[filename] = BOUNDARY


def intern(code: CodeType, instruction: int, caller: int = NOWHERE) -> int:
    """The site of an instruction, as called from `caller` when the code is a package's."""
    if caller < 0:
        of_code = known.setdefault(id(code), {})
        site = of_code.get(instruction)
        if site is None:
            site = of_code[instruction] = _add(code, instruction, caller)
        return site
    key = (id(code), instruction, caller)
    site = _with_caller.get(key)
    if site is None:
        site = _with_caller[key] = _add(code, instruction, caller)
    return site


def _add(code: CodeType, instruction: int, caller: int) -> int:
    cell = _cell_of_code.setdefault(id(code), _cells.get(code.co_filename))
    _spots.append(Spot(code, instruction, caller, cell))
    return len(_spots) - 1


def spot(site: int) -> Spot:
    return _spots[site]


def own(site: int) -> int:
    """The site itself if it is in the user's own code, else its caller's."""
    return _spots[site].caller if site >= 0 and _spots[site].caller >= 0 else site


def is_torch(filename: str) -> bool:
    """Whether a file is torch's, or stands in for it (a simulated device)."""
    return is_torch_or_ours(filename)


def is_outermost(site: int) -> bool:
    """Whether it is in the user's own code and in no function: the names there are the notebook's or script's."""
    return site >= 0 and _spots[site].code.co_name == "<module>" and files[_spots[site].code.co_filename] == USER


def find(frame: FrameType | None, outer: Callable[[FrameType], int] | None = None, base: int = NOWHERE) -> int:
    """The site of a frame or of the nearest one around it. `outer` gives the site at a boundary, `base` that of a
    thread.
    """
    while frame is not None:
        kind = files[frame.f_code.co_filename]
        if kind == USER:
            return intern(frame.f_code, frame.f_lasti)
        if kind == LIBRARY:
            return intern(frame.f_code, frame.f_lasti, _caller(frame.f_back, outer, base))
        if kind == BOUNDARY and outer is not None:
            return outer(frame)
        frame = frame.f_back
    return base


def stack(frame: FrameType | None) -> list[int]:
    """The sites of a frame and of all around it, innermost first."""
    found = []
    while frame is not None:
        kind = files[frame.f_code.co_filename]
        if kind in (USER, LIBRARY):
            found.append(
                intern(frame.f_code, frame.f_lasti, NOWHERE if kind == USER else _caller(frame.f_back, None, NOWHERE))
            )
        frame = frame.f_back
    return found


def _caller(frame: FrameType | None, outer: Callable[[FrameType], int] | None, base: int) -> int:
    while frame is not None:
        kind = files[frame.f_code.co_filename]
        if kind == USER:
            return intern(frame.f_code, frame.f_lasti)
        if kind == BOUNDARY and outer is not None:
            return own(outer(frame))
        frame = frame.f_back
    return own(base)
