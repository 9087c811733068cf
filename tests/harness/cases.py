"""Cases of the repository's programs, kept in `build/cases` until something changes that records them."""

from __future__ import annotations

import hashlib
import shutil
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from folders import ROOT

CASES: Final = ROOT / "build" / "cases"
RECORDS: Final = (
    *("recording", "simulation", "source", "runtime", "trace", "explaining", "memory", "budget"),
    *("features.py", "api/recording.py", "dtypes/autocast_recorder.py"),
    *("diagnosis/saved_case.py", "diagnosis/evidence/access_paths.py", "diagnosis/evidence/torchs_sentences.py"),
)
"""What a case depends on, beside its program: a change in a rule runs no program again."""


ENDINGS: Final = (
    ".py", ".json", ".tsv", ".txt", ".toml", ".ts", ".tsx", ".css", ".ipynb", ".devtrace", ".patch", ".md"
)  # fmt: skip
"""Of files that a person wrote."""


@cache
def digest(place: str) -> str:
    """Return a hash of a file, or of the files in a folder."""
    path = ROOT / place
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.suffix in ENDINGS)
    found = hashlib.sha256()
    for file in files:
        found.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return found.hexdigest()


@cache
def folder() -> Path:
    """Return the folder for cases that are recorded as now; those that were recorded otherwise go."""
    parts = (sys.version, version("torch"), *(digest(f"src/devtrace/{place}") for place in RECORDS))
    mine = CASES / hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]
    for other in CASES.glob("*"):
        if other != mine:
            shutil.rmtree(other, ignore_errors=True)
    mine.mkdir(parents=True, exist_ok=True)
    return mine
