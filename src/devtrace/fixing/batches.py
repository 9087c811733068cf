"""The largest batch that fits a device's memory: guessed by the slope of two small steps, and checked by running it.

    "a batch of 35 fits (245.1 MiB of 256.0 MiB), 36 does not"

The size is the one number of the user's files that is written as the size of a batch. What is said of it was run:
where a run with less ends otherwise, or has the same peak, nothing is said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.findings import Finding, Site
from devtrace.fixing.rounds import Rounds
from devtrace.fixing.source_text import SourceText
from devtrace.source.flow import defaults, targets
from devtrace.source.matching import nodes_in, nodes_of
from devtrace.source.parsing import Source, parse
from devtrace.source.user_code import owner_of
from devtrace.words.catalogue import one_after_another, sentence
from devtrace.words.text_format import format_memory

_SIZE: Final = re.compile(r"(?:^|.*[_-])(?:batch(?:[_-]?size)?|bs)", re.IGNORECASE)
_OF_OTHERS: Final = re.compile(r"eval|val|test|valid", re.IGNORECASE)
_LEAST: Final = 4
_SMALL: Final = (8, 4)
"""The two small steps are of these parts of the batch."""
_MOST_CHECKS: Final = 6
_CLOSE: Final = 50
"""Two sizes that differ by such a part of the batch are near enough."""


class Written(NamedTuple):
    """A batch's size where it is written."""

    code: Code
    node: ast.AST
    size: int


@dataclass
class Batches:
    """Runs of a program with batches of other sizes, which end without an error or out of memory."""

    rounds: Rounds
    limit: int
    announce: Callable[[int], None]

    def go(self) -> Finding | None:
        """Say of the shortage that is left how large a batch fits, and return it, where that can be known."""
        error = self.rounds.left
        if error is None or error.rule != "out-of-memory" or not self.limit:
            return None
        found = list(_written(self.rounds))
        text = self._largest(found[0], error.devices[0]) if len(found) == 1 and found[0].size >= _LEAST else ""
        return self._added(error, text) if text else None

    def _added(self, error: Finding, text: str) -> Finding:
        others = (sentence("out-of-memory.help-less", name=each.name) for each in error.holders)
        rest = next((each for each in others if each in error.help), error.help)  # what was run, and no guess beside it
        changed = replace(error, help=one_after_another([text + ".", rest]))
        findings = tuple(changed if each == error else each for each in self.rounds.last.findings)
        self.rounds.last = replace(self.rounds.last, findings=findings)
        self.rounds.why_left = text
        return changed

    def _largest(self, written: Written, device: str) -> str:
        """Return the sentence about the largest batch that was run, and the least that does not fit."""
        one, other = (max(written.size // part, at) for at, part in enumerate(_SMALL, 1))
        first, second = self._peak(written, one, device), self._peak(written, other, device)
        if not first or not second or second <= first:
            return ""
        slope = (second - first) / (other - one)
        fits, peak, beyond = other, second, written.size
        size = one + int((self.limit - first) / slope)
        for _ in range(_MOST_CHECKS):
            if beyond - fits <= max(written.size // _CLOSE, 1):
                break
            size = min(max(size, fits + 1), beyond - 1)
            seen = self._peak(written, size, device)
            if seen is None:
                return ""
            if seen:
                fits, peak, size = size, seen, size + 1 if beyond == written.size else (size + beyond) // 2
            else:
                beyond, size = size, (fits + size) // 2
        sizes = {"size": format_memory(peak), "limit": format_memory(self.limit)}
        return sentence("fix.batch", fits=fits, beyond=beyond, site=written.code.site_of(written.node), **sizes)

    def _peak(self, written: Written, size: int, device: str) -> int | None:
        """Return the most that a device had with a batch, 0 if that was too little; None: the run ended otherwise."""
        edit = written.code.replaced(written.node, str(size))
        if edit is None or len(self.rounds.runs) >= self.rounds.most:
            return None
        text = self.rounds.texts.get(edit.file) or self.rounds.read(edit.file)
        self.announce(size)
        run = self.rounds.run({**self.rounds.texts, edit.file: text.edited([edit])}, frozenset())
        self.rounds.runs.append(run)
        if run.ending == "ended":
            return run.peaks.get(device)
        return 0 if run.error is not None and run.error.rule == "out-of-memory" else None


def _written(rounds: Rounds) -> Iterator[Written]:
    """Yield the numbers that are written as sizes of batches in the user's files that the error came by."""
    site = rounds.left.site if rounds.left is not None else None
    at = [site.file] if site is not None else []
    for file in dict.fromkeys([*at, *(file for file, _ in rounds.last.lines)]):
        if owner_of(file) == "user":
            text: SourceText = rounds.texts.get(file) or rounds.read(file)
            for cell, program in text.programs():
                source = parse(program, file)
                if source is not None:
                    yield from _sizes(Code(source, Site(file, 0, cell=cell)), source)


def _sizes(code: Code, source: Source) -> Iterator[Written]:
    for name, value in _named(source.tree):
        size = getattr(value, "value", None)
        if value is not None and type(size) is int and _SIZE.fullmatch(name) and not _OF_OTHERS.search(name):
            yield Written(code, value, size)


def _named(tree: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Yield values with the names that they are given to: variables, arguments, keys, flags and parameters."""
    for statement in nodes_of(ast.stmt, tree):
        for given in targets(statement):
            yield getattr(given.node, "id", getattr(given.node, "attr", "")), given.value
    for call in nodes_of(ast.Call, tree):
        yield from ((each.arg or "", each.value) for each in call.keywords)
        flags = [text for each in call.args if type(text := getattr(each, "value", None)) is str]
        if flags:
            yield from ((flags[-1], each.value) for each in call.keywords if each.arg == "default")
    for written in nodes_of(ast.Dict, tree):
        keys = (str(getattr(key, "value", "")) for key in written.keys)
        yield from zip(keys, written.values, strict=True)
    for function in nodes_in(tree):
        yield from defaults(function)
