"""Flags of devtrace's own that come after the script, and so went to it.

A program may have flags of the same names. It knows a flag whose name is in its source: as a text ("--save"), as a
parameter (fire, typer), or as an annotated field (a dataclass).
"""

import ast
import atexit
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from devtrace.cli.output import print_line
from devtrace.cli.run_program import Program
from devtrace.runtime import overlay
from devtrace.source.user_code import owner_of
from devtrace.words.catalogue import sentence


def warn_at_exit(command: str, program: Program, takes_value: Mapping[str, bool]) -> None:
    """Name at the end what went to the program and was probably meant for devtrace, and how to write that."""
    flags = tuple(_flags_among(program.arguments, takes_value))
    if flags and not overlay.is_in_use():
        atexit.register(_Warning(command, program, flags, os.getpid(), frozenset(sys.modules)).print)


def _flags_among(words: Sequence[str], takes_value: Mapping[str, bool]) -> Iterator[tuple[str, ...]]:
    """Yield each flag with its value, as far as `--`."""
    ended = words.index("--") if "--" in words else len(words)
    for at, word in enumerate(words[:ended]):
        flag, equals, _ = word.partition("=")
        if flag in takes_value:
            yield tuple(words[at : at + (2 if takes_value[flag] and not equals else 1)])


@dataclass(frozen=True)
class _Warning:
    """Sentence for the end of the process, unless the program knows its flags."""

    command: str
    program: Program
    flags: tuple[tuple[str, ...], ...]
    process: int
    ours: frozenset[str]
    """Modules that were loaded before the program began."""

    def print(self) -> None:
        if os.getpid() != self.process or self._is_of_a_package():  # a fork; flags that may be anywhere in a package
            return
        known = {name for file in self._files() for name in _names_in(_parsed(file))}
        unknown = [each for each in self.flags if _name(each[0]) not in known]
        if unknown:
            flags = shlex.join(word for each in unknown for word in each)
            code = f"devtrace {self.command} {flags} {self._without(unknown)}"
            print_line(sentence("run.misplaced", flags=flags, script=self.program.target, code=code))

    def _without(self, flags: list[tuple[str, ...]]) -> Program:
        left = list(self.program.arguments)
        for flag in flags:
            at = left.index(flag[0])
            del left[at : at + len(flag)]
        return replace(self.program, arguments=tuple(left))

    def _is_of_a_package(self) -> bool:
        """Return whether `-m` ran an installed package."""
        return owner_of(getattr(sys.modules["__main__"], "__file__", None) or "") == "package"

    def _files(self) -> Iterator[str]:
        """Yield the program's own files: what it loaded here, and what its source imports from beside it."""
        loaded = [
            getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name not in self.ours
        ]
        yield from (file for file in loaded if isinstance(file, str) and owner_of(file) == "user")
        waiting, seen = [os.path.abspath(self.program.target)], set[str]()
        while waiting:
            file = waiting.pop()
            if file not in seen and os.path.isfile(file):
                seen.add(file)
                yield file
                folder = os.path.dirname(file)
                names = (name.replace(".", os.sep) for name in _imported_by(_parsed(file)))
                waiting += [os.path.join(folder, f"{name}{end}") for name in names for end in (".py", "/__init__.py")]


def _parsed(file: str) -> ast.AST:
    with suppress(OSError, SyntaxError, ValueError, RecursionError):
        return ast.parse(overlay.read(file))
    return ast.Module([], [])


def _name(flag: str) -> str:
    """Return what a parser calls a flag: max_ops for `--max-ops=3`."""
    return flag.partition("=")[0].removeprefix("--").replace("-", "_")


def _imported_by(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _names_in(tree: ast.AST) -> Iterator[str]:
    """Yield what may be the name of a flag."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Constant(value=str(text)):
                yield from (_name(found) for found in re.findall(r"--\w[\w-]*|^\w[\w-]*$", text))
