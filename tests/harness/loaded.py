"""Loads the text of a program as a module of a file, so that recordings find its lines."""

from __future__ import annotations

import importlib.util
import linecache
from pathlib import Path
from types import ModuleType


def module_of(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    linecache.checkcache()
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
