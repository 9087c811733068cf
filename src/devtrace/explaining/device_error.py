"""Recognizes torch's errors about devices: by torch's own sentences, and by the code that raised.

An error in place of torch's (`raise StepFailed from error`, an exception group, a note) counts as well.
A user's own `raise` does not, whatever its text.
"""

from typing import Final

from devtrace.diagnosis.evidence.error_origins import is_raised_in_source, paths, text_of
from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES, WRAPPED, is_of_another_trait, refused
from devtrace.features import find

_OUT_OF_MEMORY: Final = "CUDA out of memory. Tried to allocate"


def path_to_origin(error: BaseException) -> list[BaseException]:
    """Return the chain of exceptions from the given one to torch's device error; empty if there is none. Cheap then.

    Of several device errors the one nearest to the op counts.
    """
    found: list[BaseException] = []
    for path in paths(error):
        if _is_of_torch(path[-1]) and (not found or path[: len(found)] == found):
            found = path
    return found


def dtypes_named(text: str) -> tuple[str, ...] | None:
    """Return the dtypes that an error names; None for a device error; convolutions word both the same way."""
    read = find("error kind", "dtype")
    found = read(text) if read is not None else None
    return found.named if found is not None and (found.named or not ABOUT_DEVICES.search(text)) else None


def _is_of_torch(error: BaseException) -> bool:
    text = text_of(error)
    known = ABOUT_DEVICES.search(text) or _OUT_OF_MEMORY in text or refused(text) or is_of_another_trait(text)
    return bool(known) and (WRAPPED in text or not is_raised_in_source(error))
