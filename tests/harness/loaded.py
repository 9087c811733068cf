"""Loads a program as a module of a file, so that recordings find its lines."""

from __future__ import annotations

import importlib.util
import linecache
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def loaded(path: str | Path, name: str = "program") -> Any:
    """Return the module of a file, which has that name as long as the process lasts."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_of(path: Path, text: str) -> ModuleType:
    """Return the module of a text, which nothing else can import."""
    path.write_text(text)
    linecache.checkcache()
    module: ModuleType = loaded(path)
    del sys.modules["program"]
    return module


def programs_in(folder: Path) -> dict[str, Path]:
    """Return the file of each program of a folder: of each function that takes a device first."""
    files = {file: file.read_text() for file in sorted(folder.glob("*.py"))}
    return {name: file for file, text in files.items() for name in re.findall(r"^def (\w+)\(device", text, re.M)}


def function_of(path: Path, name: str) -> Any:
    """Return a function of a file, whose module nothing else can import."""
    function = getattr(loaded(path), name)
    del sys.modules["program"]
    return function
