"""Source files as trees, each parsed and walked once in a process: half a dozen tests ask all of them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from devtrace.source.parsing import Source, parse


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


def parsed(text: str, file: str = "") -> Source:
    """Return a text as devtrace reads it."""
    source = parse(text, file)
    assert source is not None
    return source
