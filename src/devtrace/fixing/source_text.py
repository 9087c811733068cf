"""Source files as bytes with their encoding and line ends, edits applied to them, and modules made of them anew."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from devtrace.diagnosis.findings import Edit
from devtrace.runtime import overlay
from devtrace.source.parsing import lines_of, lines_of_statement
from devtrace.source.user_code import import_name_of, owner_of
from devtrace.words.errors import UsageError

_MARK: Final = "\ufeff"
"""Byte order mark, as text."""
_LINE_ENDS: Final = ("\r\n", "\n", "\r")


class Cell(TypedDict):
    """Cell of a notebook, or statement of a script, whose `id` is its first line."""

    id: str
    source: str
    may_fail: bool


@dataclass(frozen=True)
class SourceText:
    """Text of a file or cell; `name` is for messages."""

    name: str
    data: bytes

    @property
    def encoding(self) -> str:
        """Return what the coding line says, else UTF-8; a byte order mark stays in the first line."""
        return tokenize.detect_encoding(io.BytesIO(self.data).readline)[0].removesuffix("-sig")

    @property
    def lines(self) -> list[str]:
        """Return the lines with their ends, as git counts them: only a line feed ends one."""
        return io.StringIO(self.data.decode(self.encoding), newline="\n").readlines()

    @property
    def cell_numbers(self) -> Sequence[int | None]:
        return (None,)

    def cells(self) -> Iterator[Cell]:
        """Yield the statements of a script; none of what is no text of Python."""
        try:
            tree, lines = ast.parse(self.data), lines_of(self.data.decode(self.encoding))
        except (SyntaxError, ValueError):
            return
        for first, last in map(lines_of_statement, tree.body):
            yield {"id": str(first), "source": "".join(lines[first - 1 : last]), "may_fail": False}

    def lines_in(self, _: int | None) -> list[str]:
        """Return the lines of a cell, where the text has any."""
        return self.lines

    def edited(self, edits: Iterable[Edit]) -> SourceText:
        """Return the text with all edits, which must fit it and leave it a program."""
        text = with_edits(self.data.decode(self.encoding), edits, self.name)
        try:
            data = text.encode(self.encoding)
            ast.parse(data)
        except (SyntaxError, ValueError) as fault:
            raise UsageError.of("fix-unfit.broken", name=self.name, fault=fault) from None
        return SourceText(self.name, data)


def with_edits(text: str, edits: Iterable[Edit], name: str) -> str:
    """Return a text with all edits, which must fit it; the ends of its lines stay."""
    lines = lines_of(text)
    for edit in sorted(edits, key=lambda edit: -edit.line):  # from the end, so that line numbers stay
        _apply_edit(edit, lines, name)
    return "".join(lines)


def _apply_edit(edit: Edit, lines: list[str], name: str) -> None:
    before = edit.before.split("\n") if edit.before else []
    start = edit.line - 1 if before else edit.line  # an edit with no text before inserts below its line
    present = [line.rstrip("\r\n").removeprefix(_MARK) for line in lines[start : start + len(before)]]
    if present != [line.rstrip("\r") for line in before] or start > len(lines):
        raise UsageError.of("fix-unfit", name=name, line=edit.line)
    end = _line_end(lines, start)
    if not before and start and not lines[start - 1].endswith(_LINE_ENDS):  # below a last line without an end
        lines[start - 1] += end
    has_end = not before or lines[start + len(before) - 1].endswith(_LINE_ENDS)  # else the last line gets none
    new = [line + end for line in edit.after.split("\n")] if edit.after else []
    if before and lines[start].startswith(_MARK):
        new[:1] = [_MARK + line for line in new[:1]]
    lines[start : start + len(before)] = new if has_end or not new else [*new[:-1], new[-1].removesuffix(end)]


def _line_end(lines: list[str], index: int) -> str:
    """Return how the lines next to a place end."""
    near_lines = [*lines[max(index - 1, 0) : index + 1], *lines[:1]]
    return next((end for line in near_lines for end in _LINE_ENDS if line.endswith(end)), "\n")


def forget_modules() -> None:
    """Drop the user's modules, and those of packages of which a file has another text: they are imported anew."""
    changed = {import_name_of(file) for file in overlay.files()} - {""}  # a file of no package has this name
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name != "__main__" and file and (owner_of(file) == "user" or import_name_of(file) in changed):
            del sys.modules[name]
