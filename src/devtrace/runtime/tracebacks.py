"""Takes devtrace's own frames out of a user's traceback: those between their line and torch.

    <cell> line 3        loss.backward()                              <cell> line 3        loss.backward()
    torch/_tensor.py     torch.autograd.backward(...)          ->     torch/_tensor.py     torch.autograd.backward(...)
    devtrace/recording/...  out = func(*args, **kwargs)
    torch/_ops.py        return self._op(*args, **kwargs)

Unlinked in place, so that every reader sees what it would see without devtrace: IPython, `%debug`, logging.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType

_HERE = Path(__file__).parents[1]
# Code that may run between a line of the user's and torch; the rest of devtrace is called by name, as any library is.
_BETWEEN = (
    *(f"{_HERE / part}{os.sep}" for part in ("recording", "budget", "simulation", "runtime")),
    f"{_HERE / 'notebook' / 'magic.py'}",
)
# Frames directly below ours that belong to the same call: the function with which our code goes on.
_BELOW = (f"torch{os.sep}_ops.py", "<frozen importlib._bootstrap_external>")


def hide_our_frames(error: BaseException, below: str = "") -> None:
    """Unlink our frames from the error's traceback and from those of its causes, contexts and members.

    With `below`, a file of ours that runs the user's program, all frames up to that file's are ours too.
    """
    for related in _related(error):
        first = _unlink_ours(related, below)
        if first is not related.__traceback__ and (first is not None or below):
            related.__traceback__ = first


def leave(error: BaseException) -> None:
    """Take our frames off an error that passes through one of them. A bare `raise` after it adds none again."""
    error.__traceback__ = _unlink_ours(error, "")


def _related(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__cause__, current.__context__]
        waiting += current.exceptions if isinstance(current, BaseExceptionGroup) else ()


def last_shown() -> BaseException | None:
    """Return the exception that Python, or IPython, printed last."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, then those that it was raised from, or while handling."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def entries_of(error: BaseException | None) -> list[TracebackType]:
    """Return the entries of an exception's traceback, outermost first."""
    entries, traceback = [], error.__traceback__ if error is not None else None
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    return entries


def entries_without_ours(error: BaseException, below: str = "") -> list[TracebackType]:
    """Return the entries of a traceback that are not ours, outermost first; the traceback stays as it is."""
    kept: list[TracebackType] = []
    ours = False
    for entry in entries_of(error):
        name = entry.tb_frame.f_code.co_filename
        ours = name.startswith(_BETWEEN) or (ours and name.endswith(_BELOW))
        if name == below:
            kept.clear()
        elif not ours:
            kept.append(entry)
    return kept


def outward(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, then those around it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, then those of the functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def first_of_program(frame: FrameType | None) -> FrameType | None:
    """Return the frame itself, or the first around it that is not ours."""
    for current in outward(frame):
        name, around = current.f_code.co_filename, current.f_back
        is_below = around is not None and name.endswith(_BELOW) and around.f_code.co_filename.startswith(_BETWEEN)
        if not (is_below or name.startswith(_BETWEEN)):
            return current
    return None


def _unlink_ours(error: BaseException, below: str) -> TracebackType | None:
    kept = entries_without_ours(error, below)
    for entry, following in zip(kept, [*kept[1:], None], strict=False):
        if entry.tb_next is not following:
            entry.tb_next = following
    return kept[0] if kept else None


def text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as inner:  # noqa: BLE001 (a user's __str__)
        return f"<no text: {type(inner).__name__}>"
