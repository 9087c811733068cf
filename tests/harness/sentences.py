"""What tests ask of the catalogues: what a template fills in, words that stay English, a language of brackets."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path

from devtrace.words import catalogue, language
from devtrace.words.catalogue import templates

SOURCES = Path(catalogue.__file__).parents[1]
OPEN, CLOSE = "⟦", "⟧"
TERMS = frozenset((
    "CPU", "CUDA", "DataParallel", "GPU", "JSON", "Jupyter", "JupyterLab", "NCCL", "PyTorch", "Python", "ROCm", "SARIF",
    "accelerate", "devtrace", "graph", "jupyter", "meta", "ms", "numpy", "rank", "torch",
))  # fmt: skip
"""Names that Chinese readers know in English."""


def parameters(template: str) -> set[str]:
    """Return the names that a template fills in, those inside of formats too."""
    found: set[str] = set()
    for _, name, spec, _ in string.Formatter().parse(template):
        if name is not None:
            found |= {name} | parameters(spec or "")
    return found


def wrap_all(setattr: Callable[[object, str, object], None]) -> None:
    known = {key: f"{OPEN}{each}{CLOSE}" if each else "" for key, each in templates("en").items()}
    setattr(catalogue, "templates", lambda of: known)
    setattr(language.CHOICE, "user", "en")
