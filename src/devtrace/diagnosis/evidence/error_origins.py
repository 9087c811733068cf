"""Exceptions that an error came from, their own texts, and who raised them: torch, or a `raise` of the program.

An error in place of torch's (`raise StepFailed from error`, an exception group, a note) counts as well.
A user's own `raise` does not, whatever its text.
"""

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES, WRAPPED, is_of_another_trait, refused
from devtrace.features import find
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
    return any(text_of(origin).startswith(_NO_CUDA) and not is_raised_in_source(origin) for origin in origins)


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
        causes = (*members, last.__context__, last.__cause__)
        waiting += [[*path, cause] for cause in causes if cause is not None]


def text_of(error: BaseException) -> str:
    """Return an exception's own text and its notes, without running a `__str__` of the user's."""
    args = [argument for argument in error.args if type(argument) is str]
    if type(error).__str__ not in (BaseException.__str__, KeyError.__str__, OSError.__str__):
        return "\n".join(args)
    text = " ".join(args)
    notes = error.__dict__.get("__notes__", ())
    return "\n".join([text, *(note for note in notes if type(note) is str)] if type(notes) is list else [text])


def is_raised_in_source(error: BaseException) -> bool:
    """Return whether a `raise` or an `assert` outside of torch made the exception."""
    entries = entries_of(error)
    code = entries[-1].tb_frame.f_code if entries else None
    if code is None or owner_of(code.co_filename) == "hidden":
        return False
    source, node = parsing.node_of(code, entries[-1].tb_lasti)
    return isinstance(source.statement(node), ast.Raise | ast.Assert)


# Errors of torch about devices, by its own sentences, and by the code that raised.

_OUT_OF_MEMORY: Final = "CUDA out of memory. Tried to allocate"


def path_to_origin(error: BaseException) -> list[BaseException]:
    """Return the chain of exceptions from the given one to torch's device error; empty if there is none.

    Of several device errors the one nearest to the op counts: a later path that goes on where an earlier one ended.
    """
    chain: list[BaseException] = []
    for path in paths(error):
        if _is_of_torch(path[-1]) and (not chain or path[: len(chain)] == chain):
            chain = path
    return chain


def dtypes_named(text: str) -> tuple[str, ...] | None:
    """Return the dtypes that an error names; None for a device error; convolutions word both the same way."""
    read_dtypes = find("error kind", "dtype")
    error = read_dtypes(text) if read_dtypes is not None else None
    return error.named if error is not None and (error.named or not ABOUT_DEVICES.search(text)) else None


def is_known(text: str) -> bool:
    """Return whether a text is torch's about devices, their memory, or dtypes."""
    return bool(ABOUT_DEVICES.search(text) or _OUT_OF_MEMORY in text or refused(text) or is_of_another_trait(text))


def _is_of_torch(error: BaseException) -> bool:
    text = text_of(error)
    return is_known(text) and (WRAPPED in text or not is_raised_in_source(error))
