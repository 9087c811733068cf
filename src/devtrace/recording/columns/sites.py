"""Sites: where in the user's code an op is, as small integers while recording and as spans and text at the end.

A site is the innermost frame that is neither torch's, the standard library's, Jupyter's nor ours. When that frame
lies in an installed package, the site also has a caller: the nearest frame of the user's own code. Site ids are the
process's, not a recording's: a tensor made in one traced cell keeps its birth site when another cell is traced.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import CodeType, FrameType
from typing import Final

from devtrace.recording.columns.process_history import CodePosition, history
from devtrace.runtime.tracebacks import outward
from devtrace.source.live_objects import CellText
from devtrace.source.matching import hands_on
from devtrace.source.parsing import node_of
from devtrace.source.user_code import owner_of

SKIP, USER, LIBRARY, BOUNDARY = range(4)
NOWHERE: Final = -1

_KINDS: Final = {"hidden": SKIP, "user": USER, "package": LIBRARY}


class _Files(dict[str, int]):
    """Kinds by file name, found out on first look."""

    def __missing__(self, filename: str) -> int:
        kind = self[filename] = _KINDS[owner_of(filename)]
        return kind


files: Final = _Files()
"""file name -> SKIP, USER, LIBRARY or BOUNDARY: frames of such a file carry a site, at which a walk may stop."""
known: Final[dict[int, dict[int, int]]] = {}
"""id of a code object (kept alive by its positions) -> instruction -> site, for frames of the user's own code."""


def register_cell(filename: str, count: int, cell_id: str, source: str, first: int = 1) -> None:
    """Let code objects of this file name, from now on, be the cell with this execution count."""
    history.cells[filename] = CellText(filename, count, cell_id, source, first)
    if cell_id:
        history.numbers[cell_id] = count
    files[filename] = USER


def adopt_cells(cells: Iterable[CellText]) -> None:
    """Let these be cells that ran before any was registered, also for the code of them that has been seen since."""
    adopted = {}
    for cell in cells:
        registered = history.cells.get(cell.file)
        if registered is not None and registered.text.strip() == cell.text.strip():
            cell = replace(registered, count=cell.count)
        register_cell(cell.file, cell.count, cell.cell_id, cell.text, cell.first)
        adopted[cell.file] = history.cells[cell.file]
    for site, position in enumerate(history.positions):
        cell_of_code = adopted.get(position.code.co_filename) if position.cell is None else None
        if cell_of_code is not None:
            history.positions[site] = replace(position, cell=cell_of_code)
            history.cell_of_code[id(position.code)] = cell_of_code


def number_cells(numbers: dict[str, int]) -> None:
    """Give new numbers to the cells with these ids, and none (-1) to all others."""
    history.numbers.update(dict.fromkeys(history.numbers, -1) | numbers)


def number_of(cell: CellText) -> int:
    """Return the number that a cell has now: it may have run again since, with another text."""
    return history.numbers.get(cell.cell_id, cell.count)


def cells_so_far() -> tuple[CellText, ...]:
    """Return the cells that ran, oldest first."""
    cells = [replace(cell, number=number_of(cell)) for cell in history.cells.values() if cell.count >= 0]
    return tuple(sorted(cells, key=lambda cell: cell.count))


def forget_cell(filename: str) -> None:
    """Let code objects of this file name be no cell's text: their ops are at the line that runs them."""
    history.cells.pop(filename, None)
    files[filename] = SKIP


def intern(code: CodeType, instruction: int, caller: int = NOWHERE) -> int:
    """Return the site of an instruction, as called from `caller` when the code is a package's."""
    of_code = known.setdefault(id(code), {}) if caller < 0 else history.called_from.setdefault((id(code), caller), {})
    site = of_code.get(instruction)
    if site is None:
        cell = history.cell_of_code.setdefault(id(code), history.cells.get(code.co_filename))
        history.positions.append(CodePosition(code, instruction, caller, cell))
        site = of_code[instruction] = len(history.positions) - 1
    return site


def position(site: int) -> CodePosition:
    return history.positions[site]


def own(site: int) -> int:
    """Return the site itself if it is in the user's own code, else its caller's."""
    caller = history.positions[site].caller if site >= 0 else NOWHERE
    return caller if caller >= 0 else site


def is_outermost(site: int) -> bool:
    """Return whether a site is in the user's own code and in no function, so that its names are the notebook's."""
    return site >= 0 and position(site).code.co_name == "<module>" and files[position(site).code.co_filename] == USER


def find(frame: FrameType | None, at_boundary: Callable[[FrameType], int] | None = None, base: int = NOWHERE) -> int:
    """Return the site of a frame or of the nearest one around it.

    Args:
        at_boundary: gives the site of a frame at which the walk may stop.
        base: the site where the thread was started.
    """
    while frame is not None:
        kind = files[frame.f_code.co_filename]
        if kind in (USER, LIBRARY) and _only_hands_on(frame.f_code, frame.f_lasti):
            kind = SKIP
        if kind == USER:
            return intern(frame.f_code, frame.f_lasti)
        if kind == LIBRARY:
            return intern(frame.f_code, frame.f_lasti, _user_site_around(frame.f_back, at_boundary, base))
        if kind == BOUNDARY and at_boundary is not None:
            return at_boundary(frame)
        frame = frame.f_back
    return base


def of_frames(frames: Iterable[tuple[FrameType, int]]) -> list[tuple[int, FrameType]]:
    """Return site and frame where a frame has a site, innermost first; given frame and instruction, outermost first."""
    sites_and_frames: list[tuple[int, FrameType]] = []
    caller = NOWHERE
    for frame, instruction in frames:
        kind = files[frame.f_code.co_filename]
        if kind in (USER, LIBRARY) and not _only_hands_on(frame.f_code, instruction):
            site = intern(frame.f_code, instruction, caller if kind == LIBRARY else NOWHERE)
            caller = site if kind == USER else caller
            sites_and_frames.append((site, frame))
    return sites_and_frames[::-1]


_VARIADIC: Final = 0x04 | 0x08
"""Flags of code that takes `*args` and `**kwargs`."""
_handing_on: Final[dict[tuple[CodeType, int], bool]] = {}


def _only_hands_on(code: CodeType, instruction: int) -> bool:
    """Return whether an instruction calls what a dispatcher or a decorator was given, with all that it was given.

    What that does is of the line that called it: `return getattr(backend, name)(*args, **kwargs)`.
    """
    if code.co_flags & _VARIADIC != _VARIADIC:
        return False
    key = code, instruction
    if key not in _handing_on:
        _handing_on[key] = hands_on(node_of(*key)[1], (*code.co_varnames, *code.co_freevars))
    return _handing_on[key]


def stack(frame: FrameType | None) -> list[int]:
    """Return the sites of a frame and of all around it, innermost first."""
    return [find(each) for each in outward(frame) if files[each.f_code.co_filename] in (USER, LIBRARY)]


def _user_site_around(frame: FrameType | None, at_boundary: Callable[[FrameType], int] | None, base: int) -> int:
    """Return the site of the nearest frame of the user's own code, else of the line that started the thread."""
    while frame is not None:
        kind = files[frame.f_code.co_filename]
        if kind == USER:
            return intern(frame.f_code, frame.f_lasti)
        if kind == BOUNDARY and at_boundary is not None:
            return own(at_boundary(frame))
        frame = frame.f_back
    return own(base)
