"""Text of a notebook: edits change the lines of a cell, every other character of the file stays.

A cell goes by its execution count in a fresh kernel that runs all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from devtrace.diagnosis.evidence.error_origins import is_known
from devtrace.diagnosis.findings import Edit
from devtrace.fixing.source_text import Cell, SourceText, with_edits
from devtrace.source.parsing import lines_of, parse
from devtrace.words.errors import UsageError

SKIPPED = "skip-execution"
_MAY_FAIL: Final = "raises-exception"
"""Tags of a cell that is not run, and of one that may raise, as nbclient has them."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True)
class NotebookText(SourceText):
    """Text of a notebook file."""

    @property
    def encoding(self) -> str:
        return "utf-8"

    def check(self) -> None:
        """Raise unless this is a notebook of format 4."""
        try:
            top = json.loads(self.data)
        except ValueError:
            top = None
        if not isinstance(top, dict) or not isinstance(top.get("cells"), list):
            raise UsageError.of("fix-unfit.notebook", name=self.name)

    def edited(self, edits: Iterable[Edit]) -> NotebookText:
        """Return the notebook with all edits, which must fit it and leave each cell a program that was one."""
        self.check()
        text, sources = self._text, dict(enumerate(self._sources(), 1))
        by_cell: dict[int, list[Edit]] = {}
        for edit in edits:
            by_cell.setdefault(edit.cell or 0, []).append(edit)
        for cell in sorted(by_cell, reverse=True):  # from the end, so that the spans before it stay
            if cell not in sources:
                raise UsageError.of("fix-unfit.cell", name=self.name, cell=cell)
            span = sources[cell]
            new = _edited(_joined(text, span), by_cell[cell], f"In[{cell}] of {self.name}")
            text = text[: span.begin] + _as_json(new, text, span) + text[span.end :]
        return NotebookText(self.name, text.encode())

    def lines_in(self, cell: int | None) -> list[str]:
        return self.lines if cell is None else lines_of([*self.sources()][cell - 1])

    @property
    def cell_numbers(self) -> Sequence[int]:
        return range(1, len([*self._sources()]) + 1)

    def sources(self) -> Iterator[str]:
        """Yield the texts of the cells that run, in order."""
        return (_joined(self._text, span) for span in self._sources())

    def cells(self) -> Iterator[Cell]:
        """Yield the cells that run. One that raised for its author, who went on below it, may do so again.

        A device error is what the rounds end.
        """
        self.check()
        for cell in json.loads(self.data)["cells"]:
            if runs(cell):
                failed = [each["evalue"] for each in cell.get("outputs", ()) if each["output_type"] == "error"]
                may_fail = bool(failed) and not is_known(failed[-1])
                may_fail = may_fail or _MAY_FAIL in _tags(cell)
                yield {"id": cell.get("id", ""), "source": "".join(cell["source"]), "may_fail": may_fail}

    @property
    def _text(self) -> str:
        return self.data.decode()

    def _sources(self) -> Iterator[JsonSpan]:
        """Yield the sources of the cells that run, in order: the first is In[1]."""
        text = self._text
        for span in parts_of(text, parts_of(text, span_at(text, 0))["cells"]).values():
            if runs(json.loads(text[span.begin : span.end])):
                yield parts_of(text, span)["source"]


def runs(cell: Any) -> bool:
    """Return whether a cell is run, and so gets an execution count."""
    is_code = cell["cell_type"] == "code" and "".join(cell["source"]).strip() != ""
    return is_code and SKIPPED not in _tags(cell)


def _tags(cell: Any) -> list[str]:
    tags: list[str] = cell.get("metadata", {}).get("tags", [])
    return tags


def _joined(text: str, span: JsonSpan) -> str:
    return "".join(json.loads(text[span.begin : span.end]))


def _edited(source: str, edits: list[Edit], name: str) -> str:
    new = with_edits(source, edits, name)
    if not source.endswith("\n"):
        new = new.removesuffix("\n")
    if parse(source) is not None and parse(new) is None:  # one with magics is no program to Python itself
        raise UsageError.of("fix-unfit.broken-cell", name=name)
    return new


def _as_json(new: str, text: str, span: JsonSpan) -> str:
    """Write a source as the old one was written: as one string, or as lines with the same space between them."""
    old = [*parts_of(text, span).values()]
    raw = [text[item.begin : item.end] for item in old]
    is_ascii = text.isascii() and "\\u" in text
    if not old:
        return json.dumps(new, ensure_ascii=is_ascii)
    known = {json.loads(line): line for line in raw}
    head, tail = text[span.begin : old[0].begin], text[old[-1].end : span.end]
    between = text[old[0].end : old[1].begin] if len(old) > 1 else f",{head[1:]}"
    parts = new.splitlines(keepends=True)  # as nbformat does, whatever ends a line of Python
    lines = [known.get(line) or json.dumps(line, ensure_ascii=is_ascii) for line in parts]
    return head + between.join(lines) + tail


# Positions of values in JSON text, so that one value is replaced and every other character stays.


class JsonSpan(NamedTuple):
    begin: int
    end: int


def span_at(text: str, at: int) -> JsonSpan:
    """Return the span of the value at a place, past the space there; raises ValueError if it is no JSON."""
    begin = _past_space(text, at)
    return JsonSpan(begin, _DECODER.raw_decode(text, begin)[1])


def parts_of(text: str, value: JsonSpan) -> dict[Any, JsonSpan]:
    """Return the values of an object by key, those of an array by index; nothing of any other value."""
    found: dict[Any, JsonSpan] = {}
    opening, at = text[value.begin], _past_space(text, value.begin + 1)
    while opening in "{[" and text[at] not in "}]":
        key: Any = len(found)
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _past_space(text, at) + 1  # the colon
        found[key] = span_at(text, at)
        at = _past_space(text, found[key].end)
        if text[at] == ",":
            at = _past_space(text, at + 1)
    return found


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
