"""The notebook's errors fixed in the background: a thread, its processes, and what they have said.

    fix = NotebookFix(changed, namespace, raised)
    fix.begin(cells, "cuda:1")          # `changed` is called at each change of the state, in the thread
    fix.state                           # as the page shows it; None before the first
    fix.cell_ended()                    # what has to run goes by what the kernel, whose namespace it is, has run
    fix.cancel()

Whatever it has begun ends with it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from devtrace.fixing.notebooks.job import NotebookJob
from devtrace.fixing.notebooks.run_again import cells_needed, cells_to_run, texts_of
from devtrace.fixing.notebooks.state import Beginning, Fixing, Job, first_state
from devtrace.fixing.notebooks.text import runs
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError, named

State = dict[str, Any]
_CELL: Final = re.compile(r"\bIn\[\d+\]")
_LOOK: Final = 0.2
"""Seconds between two looks at a job's progress."""


class NotebookFix:
    """At most one at a time: a second one ends the first."""

    def __init__(
        self,
        changed: Callable[[], None],
        namespace: Mapping[str, Any],
        raised: Mapping[str, str],
        took: Mapping[str, float] = MappingProxyType({}),
        beginning: Callable[[Job], Beginning] = lambda request: Beginning(),
    ) -> None:
        self.state: State | None = None
        self._changed = changed
        self._namespace = namespace
        self._raised, self._took = raised, took  # by the cells of the session, which went on below an error
        self._beginning = beginning
        self._cells: Sequence[State] = []
        self._job: NotebookJob | None = None
        self._lock = threading.Lock()

    def begin(self, cells: list[State], devices: str, *, as_far: bool = False, one: bool = False) -> threading.Thread:
        """`as_far`: the notebook has cells below the last of these; `one`: fix only the first error."""
        self.close()
        code_cells = [cell for cell in cells if runs({"cell_type": "code", "source": cell["source"]})]
        request: Job = {
            "devices": devices,
            "as_far": as_far,
            "one": one,
            "cells": [
                {
                    "cell": cell["cell"],
                    "source": cell["source"],
                    "raised": self._raised.get(cell["cell"], ""),
                    "took": self._took.get(cell["cell"], 0),
                }
                for cell in code_cells
            ],
        }
        job = NotebookJob(request, lambda state: self._take_state(job, state), self._beginning(request))
        with self._lock:
            self._job, self._cells, self.state = job, cells, dict(first_state())
        self._changed()
        thread = threading.Thread(target=self._run_job, args=(job,), name="devtrace-fix", daemon=True)
        thread.start()
        return thread

    def cancel(self) -> None:
        if self.close() and self.state is not None and self.state["state"] == "running":
            self.state = {**self.state, "state": "cancelled"}
            self._changed()

    def cell_ended(self) -> None:
        state = self.state
        if state is not None:
            new_state = self._with_cells_to_run(state)
            if new_state != state:
                self._set_state(new_state, lambda: self.state is state)

    def close(self) -> bool:
        """End the job; return whether there was one. What it says from now on is ignored."""
        with self._lock:
            job, self._job = self._job, None
        if job is not None:
            job.close()
        return job is not None

    def _run_job(self, job: NotebookJob) -> None:
        try:
            job.go()
        except Exception as fault:  # noqa: BLE001 (whatever it is, whoever waits for the end hears of one)
            closing = str(fault) if isinstance(fault, DevtraceError) else named(fault)
            self._set_state({**(self.state or {}), "state": "failed", "closing": closing}, lambda: job is self._job)
        finally:
            job.close()
        with self._lock:
            self._job = None if self._job is job else self._job

    def _take_state(self, job: NotebookJob, state: Fixing) -> None:
        old, new = self.state or {}, dict(state)
        is_same = new["changed"] == old.get("changed")
        now = {**new, "run": old["run"], "needed": old["needed"]} if is_same else self._with_cells_to_run(new)
        self._set_state(now, lambda: job is self._job)

    def _set_state(self, state: State, is_still: Callable[[], bool]) -> None:
        """Make this the state, unless another job or state came while it was worked out."""
        with self._lock:
            if not is_still():
                return
            self.state = state
        self._changed()

    def _with_cells_to_run(self, state: State) -> State:
        """Return a state with the cells to run for its changes, without those at the top that ran well since."""
        if not state["changed"]:
            return state
        after = {cell["cell"]: cell["after"] for cell in state["changed"]}
        ids = [cell["cell"] for cell in self._cells]
        texts = [str(after.get(cell["cell"], cell["source"])) for cell in self._cells]
        run = cells_to_run(texts, {ids.index(cell) for cell in after})
        needed = cells_needed(texts, run, self._namespace)
        texts_run, left = texts_of(self._namespace), sorted({*run, *needed})
        ran_well = [cell for cell in self._took if not self._raised.get(cell)]
        while left and left[0] not in needed and texts[left[0]].strip() in texts_run and ids[left[0]] in ran_well:
            del ran_well[: ran_well.index(ids[left.pop(0)]) + 1]
        return {**state, "run": [ids[index] for index in left], "needed": [ids[index] for index in needed]}


def wait_for(fix: NotebookFix, thread: threading.Thread, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield what there is to read: each round as it begins, then each bug with its change. Ctrl-C cancels."""
    round_shown = 0
    try:
        while thread.is_alive() and (fix.state is None or fix.state["state"] == "running"):
            thread.join(_LOOK)
            if fix.state is not None and fix.state["round"] > round_shown:
                round_shown = fix.state["round"]
                yield sentence("fix.run", number=round_shown)
    except KeyboardInterrupt:
        fix.cancel()
        yield sentence("fix.cancelled")
        return
    state = fix.state or {}
    names = {f"In[{number}]": labels[cell] for number, cell in enumerate(state["cells"], 1) if cell in labels}
    for bug in [*state["bugs"], *([state["left"]] if "left" in state else [])]:
        yield from _bug_lines(bug, names, labels)
    yield _renumbered(state["closing"], names)


def _renumbered(text: str, names: Mapping[str, str]) -> str:
    """Return a text of the job in which cells have the numbers of the user's kernel."""
    return _CELL.sub(lambda match: names.get(match[0], match[0]), text)


def _bug_lines(bug: State, names: Mapping[str, str], labels: Mapping[str, str]) -> Iterator[str]:
    yield f"✗ {_renumbered(bug['message'], names)}"
    for hunk in bug["hunks"]:
        yield "  " + sentence("fix.place", source=labels.get(hunk["cell"], hunk["file"]), line=hunk["line"])
        for sign, text in (("-", hunk["before"]), ("+", hunk["after"])):
            yield from (f"    {sign} {line}" for line in text.split("\n") if text)
    if len(bug["hunks"]) != 1 and bug["help"]:
        yield "  " + sentence("fix.help", help=_renumbered(bug["help"], names))
