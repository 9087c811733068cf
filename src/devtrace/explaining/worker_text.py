"""Errors that torch hands on as text, from a DataLoader's worker or a DataParallel replica: the frames are gone.

The "Original Traceback" in the message still has the lines, and torch's sentence the devices.
"""

import re
from typing import Final, NamedTuple

from devtrace.diagnosis.evidence.torchs_sentences import WRAPPED
from devtrace.explaining.reading.file_index import site_of
from devtrace.recording.columns import sites
from devtrace.source import parsing
from devtrace.source.parsing import NO_CODE, Span
from devtrace.words.catalogue import family, sentence

_CAUGHT: Final = re.compile(r"Caught [\w ]+ in (DataLoader worker|replica|file)")
_HOW: Final = family(
    "explained.how-*", "explained.how-worker", "explained.how-replica", "explained.how-file", "explained.how-other"
)
_LINE: Final = re.compile(r'^  File "(.+)", line (\d+), in ', re.M)


class WorkerText(NamedTuple):
    """One error as text: the site of the line that failed, and how to run the program so that its frames are there."""

    site: int
    note: str


def read_worker_text(text: str) -> WorkerText | None:
    """Return the innermost line of the traceback that an error's message quotes; None for a message without one."""
    if WRAPPED not in text:
        return None
    match = _CAUGHT.search(text)
    lines = _LINE.findall(text.partition(WRAPPED)[2])
    places = [(file, int(line)) for file, line in lines if sites.files[file] in (sites.USER, sites.LIBRARY)]
    how = match[1].rpartition(" ")[2] if match is not None else "other"
    note = sentence("explained.as-text", how=sentence(_HOW[how]))
    file, line = places[-1] if places else ("", 0)
    source = parsing.read(file)
    node = source.node_at(Span(line, -1, -1, -1))
    return WorkerText(site_of(node, source, sites.NOWHERE) if node is not NO_CODE else sites.NOWHERE, note)
