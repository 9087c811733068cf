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
"""Seconds between two looks at how far it is."""


class NotebookFix:
    """At most one at a time: a second one ends the first."""

    def __init__(
        self,
        changed: Callable[[], None],
        namespace: Mapping[str, Any],
        raised: Mapping[str, str],
        took: Mapping[str, float] = MappingProxyType({}),
        beginning: Callable[[Job], Beginning] = lambda asked: Beginning(),
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
        """`as_far`: others are below the last of the cells; `one`: fix the first error."""
        self.close()
        code = [each for each in cells if runs({"cell_type": "code", "source": each["source"]})]
        asked: Job = {
            "devices": devices,
            "as_far": as_far,
            "one": one,
            "cells": [
                {
                    "cell": each["cell"],
                    "source": each["source"],
                    "raised": self._raised.get(each["cell"], ""),
                    "took": self._took.get(each["cell"], 0),
                }
                for each in code
            ],
        }
        job = NotebookJob(asked, lambda state: self._told(job, state), self._beginning(asked))
        with self._lock:
            self._job, self._cells, self.state = job, cells, dict(first_state())
        self._changed()
        thread = threading.Thread(target=self._go, args=(job,), name="devtrace-fix", daemon=True)
        thread.start()
        return thread

    def cancel(self) -> None:
        if self.close() and self.state is not None and self.state["state"] == "running":
            self.state = {**self.state, "state": "cancelled"}
            self._changed()

    def cell_ended(self) -> None:
        state = self.state
        if state is not None:
            now = self._with_what_runs(state)
            if now != state:
                self._set(now, lambda: self.state is state)

    def close(self) -> bool:
        """End the job; return whether there was one. What it has said and nobody has taken yet is passed over."""
        with self._lock:
            job, self._job = self._job, None
        if job is not None:
            job.close()
        return job is not None

    def _go(self, job: NotebookJob) -> None:
        try:
            job.go()
        except Exception as fault:  # noqa: BLE001 (whatever it is, whoever waits for the end hears of one)
            closing = str(fault) if isinstance(fault, DevtraceError) else named(fault)
            self._set({**(self.state or {}), "state": "failed", "closing": closing}, lambda: job is self._job)
        finally:
            job.close()
        with self._lock:
            self._job = None if self._job is job else self._job

    def _told(self, job: NotebookJob, state: Fixing) -> None:
        known, told = self.state or {}, dict(state)
        is_same = told["changed"] == known.get("changed")
        now = {**told, "run": known["run"], "needed": known["needed"]} if is_same else self._with_what_runs(told)
        self._set(now, lambda: job is self._job)

    def _set(self, state: State, is_still: Callable[[], bool]) -> None:
        """Make this the state unless something else was asked for while it was worked out."""
        with self._lock:
            if not is_still():
                return
            self.state = state
        self._changed()

    def _with_what_runs(self, state: State) -> State:
        """Return a state with the cells left to run for its changes, in order, and those that only others need."""
        if not state["changed"]:
            return state
        after = {each["cell"]: each["after"] for each in state["changed"]}
        ids = [each["cell"] for each in self._cells]
        texts = [str(after.get(each["cell"], each["source"])) for each in self._cells]
        run = cells_to_run(texts, {ids.index(cell) for cell in after})
        needed = cells_needed(texts, run, self._namespace)
        ran, left = texts_of(self._namespace), sorted({*run, *needed})
        clean = [cell for cell in self._took if not self._raised.get(cell)]
        while left and left[0] not in needed and texts[left[0]].strip() in ran and ids[left[0]] in clean:
            del clean[: clean.index(ids[left.pop(0)]) + 1]
        return {**state, "run": [ids[at] for at in left], "needed": [ids[at] for at in needed]}


def wait_for(fix: NotebookFix, reader: threading.Thread, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield what there is to read: each round as it begins, then each bug with its change. Ctrl-C cancels."""
    shown = 0
    try:
        while reader.is_alive() and (fix.state is None or fix.state["state"] == "running"):
            reader.join(_LOOK)
            if fix.state is not None and fix.state["round"] > shown:
                shown = fix.state["round"]
                yield sentence("fix.run", number=shown)
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
    """Return a text of the job with its cells called as the reader's kernel numbers them."""
    return _CELL.sub(lambda found: names.get(found[0], found[0]), text)


def _bug_lines(bug: State, names: Mapping[str, str], labels: Mapping[str, str]) -> Iterator[str]:
    yield f"✗ {_renumbered(bug['message'], names)}"
    for hunk in bug["hunks"]:
        yield "  " + sentence("fix.place", source=labels.get(hunk["cell"], hunk["file"]), line=hunk["line"])
        for sign, text in (("-", hunk["before"]), ("+", hunk["after"])):
            yield from (f"    {sign} {line}" for line in text.split("\n") if text)
    if len(bug["hunks"]) != 1 and bug["help"]:
        yield "  " + sentence("fix.help", help=_renumbered(bug["help"], names))
