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
        """Return the notebook with all edits, which must fit; a cell that was a program must stay one."""
        self.check()
        text, sources = self._text, dict(enumerate(self._source_spans(), 1))
        by_cell: dict[int, list[Edit]] = {}
        for edit in edits:
            by_cell.setdefault(edit.cell or 0, []).append(edit)
        for cell in sorted(by_cell, reverse=True):  # from the end, so that the spans before it stay
            if cell not in sources:
                raise UsageError.of("fix-unfit.cell", name=self.name, cell=cell)
            span = sources[cell]
            new = _edited_source(_source_at(text, span), by_cell[cell], f"In[{cell}] of {self.name}")
            text = text[: span.begin] + _as_json(new, text, span) + text[span.end :]
        return NotebookText(self.name, text.encode())

    def lines_in(self, cell: int | None) -> list[str]:
        return self.lines if cell is None else lines_of([*self.sources()][cell - 1])

    @property
    def cell_numbers(self) -> Sequence[int]:
        return range(1, len([*self._source_spans()]) + 1)

    def sources(self) -> Iterator[str]:
        """Yield the texts of the cells that run, in order."""
        return (_source_at(self._text, span) for span in self._source_spans())

    def cells(self) -> Iterator[Cell]:
        """Yield the cells that run. A cell that raised when its author ran it may raise again.

        After a device error (`is_known`) it may not: the rounds are there to fix that.
        """
        self.check()
        for cell in json.loads(self.data)["cells"]:
            if runs(cell):
                errors = [output["evalue"] for output in cell.get("outputs", ()) if output["output_type"] == "error"]
                may_fail = (bool(errors) and not is_known(errors[-1])) or _MAY_FAIL in _tags(cell)
                yield {"id": cell.get("id", ""), "source": "".join(cell["source"]), "may_fail": may_fail}

    @property
    def _text(self) -> str:
        return self.data.decode()

    def _source_spans(self) -> Iterator[JsonSpan]:
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


def _source_at(text: str, span: JsonSpan) -> str:
    return "".join(json.loads(text[span.begin : span.end]))


def _edited_source(source: str, edits: list[Edit], name: str) -> str:
    new = with_edits(source, edits, name)
    if not source.endswith("\n"):
        new = new.removesuffix("\n")
    if parse(source) is not None and parse(new) is None:  # a source with magics never parses
        raise UsageError.of("fix-unfit.broken-cell", name=name)
    return new


def _as_json(new: str, text: str, span: JsonSpan) -> str:
    """Write a source as the old one was written: as one string, or as lines with the same space between them."""
    old = [*parts_of(text, span).values()]
    raw = [text[item.begin : item.end] for item in old]
    is_ascii = text.isascii() and "\\u" in text
    if not old:
        return json.dumps(new, ensure_ascii=is_ascii)
    written = {json.loads(line): line for line in raw}
    head, tail = text[span.begin : old[0].begin], text[old[-1].end : span.end]
    between = text[old[0].end : old[1].begin] if len(old) > 1 else f",{head[1:]}"
    parts = new.splitlines(keepends=True)  # as nbformat does, whatever ends a line of Python
    lines = [written.get(line) or json.dumps(line, ensure_ascii=is_ascii) for line in parts]
    return head + between.join(lines) + tail


# Positions of values in JSON text, so that one value is replaced and every other character stays.


class JsonSpan(NamedTuple):
    begin: int
    end: int


def span_at(text: str, position: int) -> JsonSpan:
    """Return the span of the value at a place, past the space there; raises ValueError if it is no JSON."""
    begin = _past_space(text, position)
    return JsonSpan(begin, _DECODER.raw_decode(text, begin)[1])


def parts_of(text: str, value: JsonSpan) -> dict[Any, JsonSpan]:
    """Return the values of an object by key, those of an array by index; nothing of any other value."""
    spans: dict[Any, JsonSpan] = {}
    opening, position = text[value.begin], _past_space(text, value.begin + 1)
    while opening in "{[" and text[position] not in "}]":
        key: Any = len(spans)
        if opening == "{":
            key, position = _DECODER.raw_decode(text, position)
            position = _past_space(text, position) + 1  # the colon
        spans[key] = span_at(text, position)
        position = _past_space(text, spans[key].end)
        if text[position] == ",":
            position = _past_space(text, position + 1)
    return spans


def _past_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
