"""Other text in the place of source files, for the length of one process: a fix is tried before a file is changed.

Imports, the main script, tracebacks and `inspect` see the other text under the file's own name.
"""

import importlib.machinery
import importlib.util
import io
import json
import linecache
import os
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Final

from devtrace.runtime.whole_files import put

VARIABLE: Final = "DEVTRACE_OVERLAY"
"""Environment variable that names the file with the texts; a process that is started by the program has it too."""

_TEXTS: Final[dict[str, bytes]] = {}


def write(path: Path, texts: Mapping[str, bytes]) -> None:
    """Write texts by file, for a process that is started with VARIABLE set to the path."""
    put(path, json.dumps({file: text.decode("latin-1") for file, text in texts.items()}))


def use_from_environment() -> None:
    """Take the texts that the environment names, if it does; a process that outlives its round finds none."""
    path = os.environ.get(VARIABLE)
    if path and os.path.exists(path):
        texts = json.loads(Path(path).read_text(encoding="utf-8"))
        use({file: text.encode("latin-1") for file, text in texts.items()})


def files() -> list[str]:
    return [*_TEXTS]


def use(texts: Mapping[str, bytes]) -> None:
    for file, text in texts.items():
        real = os.path.realpath(file)
        _TEXTS[real] = text
        for name in {file, real}:
            # Without a time of change, linecache keeps the lines whatever happens to the file.
            linecache.cache[name] = (len(text), None, _lines(text), name)
    if _TEXTS and importlib.machinery.SourceFileLoader.get_code is not _code_of_module:
        importlib.machinery.SourceFileLoader.get_code = _code_of_module  # type: ignore[method-assign, assignment]


def read(file: str | os.PathLike[str]) -> bytes:
    """Return the text of a file, or what stands in its place."""
    text = _TEXTS.get(os.path.realpath(file))
    return Path(file).read_bytes() if text is None else text


def _lines(text: bytes) -> list[str]:
    """Return the lines of a file as linecache reads them: only what ends a line for Python does."""
    return io.StringIO(importlib.util.decode_source(text)).readlines()


_ORIGINAL: Final = importlib.machinery.SourceFileLoader.get_code


def _code_of_module(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
    """Compile the other text, past the compiled file that Python keeps."""
    path = loader.get_filename(name)
    text = _TEXTS.get(os.path.realpath(path))
    if text is None:
        return _ORIGINAL(loader, name)
    compiled: CodeType = loader.source_to_code(text, path)
    return compiled
