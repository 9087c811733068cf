"""Exceptions that an error came from, their own texts, and who raised them: torch, or a `raise` of the program."""

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.runtime.tracebacks import entries_of
from devtrace.source import parsing
from devtrace.source.user_code import owner_of

_NO_CUDA: Final = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
)
MOST_RELATED: Final = 100


def is_lack_of_cuda(error: BaseException) -> bool:
    """Return whether torch raised an exception, or one that it came from, for want of a CUDA device."""
    origins = (path[-1] for path in paths(error))
    return any(text_of(each).startswith(_NO_CUDA) and not is_raised_in_source(each) for each in origins)


def paths(error: BaseException) -> Iterator[list[BaseException]]:
    """Yield an exception and all that it came from, each as the path that leads there, outermost first."""
    waiting: list[list[BaseException]] = [[error]]
    seen: set[int] = set()
    while waiting and len(seen) < MOST_RELATED:
        path = waiting.pop()
        last = path[-1]
        if id(last) in seen:
            continue
        seen.add(id(last))
        yield path
        members = last.exceptions if isinstance(last, BaseExceptionGroup) else ()
        inner = (*members, last.__context__, last.__cause__)
        waiting += [[*path, each] for each in inner if each is not None]


def text_of(error: BaseException) -> str:
    """Return an exception's own text and its notes, without running a `__str__` of the user's."""
    kind = type(error)
    if kind.__str__ not in (BaseException.__str__, KeyError.__str__, OSError.__str__):
        args = [each for each in error.args if type(each) is str]
        return "\n".join(args)
    own = " ".join(each for each in error.args if type(each) is str)
    notes = error.__dict__.get("__notes__", ())
    return "\n".join([own, *(note for note in notes if type(note) is str)] if type(notes) is list else [own])


def is_raised_in_source(error: BaseException) -> bool:
    """Return whether a `raise` or an `assert` outside of torch made the exception."""
    entries = entries_of(error)
    code = entries[-1].tb_frame.f_code if entries else None
    if code is None or owner_of(code.co_filename) == "hidden":
        return False
    source, node = parsing.node_of(code, entries[-1].tb_lasti)
    statement = source.statement(node) if source is not None and node is not None else None
    return isinstance(statement, ast.Raise | ast.Assert)
