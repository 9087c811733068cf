"""A notebook that is open somewhere, fixed in processes of its own.

What it tells is as `panel/messages.json` describes `Fixing`; the last has a state other than "running". The cells are
those that the reader sees, saved or not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from devtrace.diagnosis.findings import Finding
from devtrace.fixing.compared import Compared, ReferenceRun
from devtrace.fixing.notebooks.state import Beginning, Bug, Changed, Fixing, Hunk, Job, PageCell, first_state
from devtrace.fixing.notebooks.text import NotebookText
from devtrace.fixing.program import ProgramRun
from devtrace.fixing.rounds import Change, Refusal, Rounds, opcodes
from devtrace.fixing.runner import Runner
from devtrace.fixing.source_text import SourceText
from devtrace.runtime.device_spec import count_of
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line

NAME: Final = "notebook.ipynb"
"""Of a file in the notebook's folder that is never written: edits and sites of its cells go by it."""
_PASSED: Final = "an error below which its reader went on"
_NOTEBOOK: Final = "fix.nothing-notebook", "fix.proven-notebook", "fix.tried-notebook"
_AS_FAR: Final = "fix.nothing-as-far", "fix.proven-as-far", "fix.tried-as-far"


class NotebookJob:
    """Runs the rounds of one notebook: the page knows cells by their ids, the rounds by their numbers in order."""

    def __init__(self, job: Job, tell: Callable[[Fixing], None], beginning: Beginning) -> None:
        cells, self._as_far, self._tell = job["cells"], job["as_far"], tell
        self._path = os.path.join(os.getcwd(), NAME)
        above: list[PageCell] = [{**cell, "raised": cell["raised"] and _PASSED} for cell in cells[:-1]]
        self._text = NotebookText(self._path, _as_notebook([*above, *cells[-1:]] if job["one"] else cells))
        self._ids, self._seconds = [cell["cell"] for cell in cells], [cell["took"] for cell in cells]
        self._state: Fixing = {**first_state(), "cells": self._ids}
        new_runner = partial(
            Runner, (self._path,), job["devices"], beginning.limit, start=beginning.start, position=beginning.position
        )
        self._runner, self._reference = new_runner(cell_begins=self._cell_begins), new_runner()
        if beginning.start is not None:  # a fork must be of the kernel as it is now
            self._runner.host()
            self._reference.host()
        self._rounds = Rounds(self._run, self._read, announce=self._announce, only_first=job["one"])

    def go(self) -> None:
        """Run the rounds to their end, in any thread."""
        rounds = self._rounds
        rounds.go()
        is_proven = rounds.is_proven and rounds.last.ending == "ended" and not rounds.unmended
        compared = None
        if is_proven and rounds.changes:
            reference = ReferenceRun(self._run_as_it_was)
            compared = reference.compared(rounds.last, rounds.is_of_memory, bool(rounds.registered))
        if rounds.left is not None:
            self._state["left"] = self._bug(rounds.left, rounds.refused)
        grade = "tried" if compared is not None and not compared.is_proof else "proven"
        state, changed = (grade if is_proven else "left"), self._changed_cells(rounds.changes)
        self._report(state=state, bugs=self._bugs(), closing=self._closing(compared), changed=changed)

    def _read(self, file: str) -> SourceText:
        return self._text if file == self._path else SourceText(file, Path(file).read_bytes())

    def _run(self, texts: Mapping[str, SourceText], own_packages: frozenset[str]) -> ProgramRun:
        self._runner.begin({self._path: self._text, **texts}, own_packages)
        if len(self._rounds.changes) == 1 and self._reference.again is None:
            self._begin_reference()
        return self._runner.result()

    def _run_as_it_was(self) -> ProgramRun:
        if self._reference.is_begun and self._reference.again != self._runner.again:
            self._reference.result()  # it ran other cells than a later change needs
        if not self._reference.is_begun:
            self._begin_reference()
        return self._reference.result()

    def _begin_reference(self) -> None:
        """Let the notebook run as it was, on one memory, beside the rounds."""
        self._reference.begin({self._path: self._text}, again=self._runner.again, one_device=True)

    def close(self) -> None:
        self._runner.close()
        self._reference.close()

    def _announce(self, rounds: Rounds, _: frozenset[str]) -> None:
        held_so_far = self._changed_cells(rounds.changes[:-1])  # the last one has not run yet
        self._report(round=len(rounds.runs) + 1, cell="", bugs=self._bugs(), changed=held_so_far)

    def _cell_begins(self, number: int) -> None:
        time = self._seconds[number - 1]
        self._state.pop("expected", None)
        self._report(cell=self._id_of(number), below=len(self._ids) - number, **({"expected": time} if time else {}))

    def _report(self, **parts: Any) -> None:
        self._state = {**self._state, **parts}  # type: ignore[typeddict-item]
        self._tell(self._state)

    def _id_of(self, number: int | None) -> str:
        return self._ids[number - 1] if number is not None and 0 < number <= len(self._ids) else ""

    def _closing(self, compared: Compared | None) -> str:
        rounds, run = self._rounds, self._rounds.last
        if rounds.left is not None:
            return self._sentence_on_error_left(rounds.left)
        if rounds.unmended:
            return rounds.unmended
        if run.error is not None and rounds.only_first:
            return sentence("fix.tried-next", site=run.error.site, message=one_line(run.error.message))
        if run.error is not None:
            return sentence("fix.not-proven", count=len(rounds.runs))
        if run.ending == "time":
            return sentence("fix.trial-late", limit=f"{self._runner.timeout:.0f}")
        if run.raised.startswith("PermissionError") and self._runner.start is not None:
            return sentence("fix.refused", raised=run.raised)
        if run.ending != "ended":
            return sentence("fix.ended-early", devices=self._devices(), raised=run.raised or sentence("fix.signal"))
        nothing, proven, tried = _AS_FAR if self._as_far else _NOTEBOOK
        values = {"devices": self._devices(), "last": f"In[{len(self._ids)}]"}
        if compared is None:
            return sentence(nothing, **values)
        return sentence(proven if compared.is_proof else tried, compared=rounds.difference(compared), **values)

    def _sentence_on_error_left(self, left: Finding) -> str:
        """Say how many errors are fixed, where the next one is, and how many cells below it did not run."""
        rounds, tried = self._rounds, len(self._rounds.refused)
        why = sentence("fix.none-held", count=tried) if tried > 1 else rounds.why_left
        if left.site is None or rounds.only_first:
            return why
        fixed, below = len(rounds.changes), len(self._ids) - (left.site.cell or len(self._ids))
        text = sentence("fix.left-first", site=left.site, why=why)
        if fixed:
            text = sentence("fix.left-after", fixed=fixed, site=left.site, why=why)
        return sentence("fix.not-reached", left=text, below=below) if below else text

    def _devices(self) -> str:
        return sentence("fix.devices", count=count_of(self._runner.simulate))

    def _bugs(self) -> list[Bug]:
        return [self._bug(change.finding, change.refused, *self._hunks(change)) for change in self._rounds.changes]

    def _bug(self, finding: Finding, refused: Sequence[Refusal], *hunks: Hunk) -> Bug:
        cell, line = (self._id_of(finding.site.cell), finding.site.line) if finding.site is not None else ("", 0)
        message = one_line(finding.message)
        bug: Bug = {"cell": cell, "line": line, "message": message, "help": finding.help, "hunks": [*hunks]}
        return {**bug, "refused": [*refused]} if refused else bug

    def _hunks(self, change: Change) -> Iterator[Hunk]:
        for file in change.after:
            for number in change.after[file].cell_numbers:
                cell, module = self._id_of(number), "" if number else file
                old, new = (_without_line_ends(texts[file].lines_in(number)) for texts in (change.before, change.after))
                for kind, old_begin, old_end, new_begin, new_end in opcodes(change, file, number):
                    if kind != "equal":
                        before, after = "\n".join(old[old_begin:old_end]), "\n".join(new[new_begin:new_end])
                        yield {"cell": cell, "file": module, "line": old_begin + 1, "before": before, "after": after}

    def _changed_cells(self, changes: Sequence[Change]) -> list[Changed]:
        final = next((change.after[self._path] for change in changes[::-1] if self._path in change.after), self._text)
        assert isinstance(final, NotebookText)
        cells = zip(self._ids, self._text.sources(), final.sources(), strict=True)
        return [{"cell": cell, "before": before, "after": after} for cell, before, after in cells if before != after]


def _without_line_ends(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _as_notebook(cells: Sequence[PageCell]) -> bytes:
    base: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}}
    error: dict[str, Any] = {"output_type": "error", "ename": "", "traceback": []}
    outputs = [[{**error, "evalue": cell["raised"]}] if cell["raised"] else [] for cell in cells]
    code = [
        {**base, "id": cell["cell"], "source": cell["source"], "outputs": outputs[at]} for at, cell in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": code}).encode()
