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
    *("features.py", "api/recording.py", "dtypes/autocast_recorder.py", "costs/idle_optimizers.py"),
    *("diagnosis/saved_case.py", "diagnosis/evidence/access_paths.py", "diagnosis/evidence/torchs_sentences.py"),
)
"""What a case depends on, beside its program: a change in a rule runs no program again."""


@cache
def folder() -> Path:
    """Return the folder for cases that are recorded as now; those that were recorded otherwise go."""
    found = hashlib.sha256(f"{sys.version} {version('torch')}".encode())
    for place in RECORDS:
        path = ROOT / "src" / "devtrace" / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    mine = CASES / found.hexdigest()[:16]
    for other in CASES.glob("*"):
        if other != mine:
            shutil.rmtree(other, ignore_errors=True)
    mine.mkdir(parents=True, exist_ok=True)
    return mine
