"""The notebook's errors fixed in the background: a process that runs it on simulated devices, and what that has said.

    fix = NotebookFix(changed, namespace, raised)
    fix.begin(cells, "cuda:1")          # `changed` is called at each line of the process, in a thread of its own
    fix.state                           # as the page shows it; None before the first
    fix.cell_ended()                    # what has to run goes by what the kernel, whose namespace it is, has run
    fix.cancel()

The process ends with this one: it reads an input that nobody else holds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from devtrace.fixing.notebooks.run_again import cells_needed, cells_to_run
from devtrace.fixing.notebooks.running import Running, of_process
from devtrace.fixing.notebooks.state import Job, beginning
from devtrace.fixing.notebooks.text import runs
from devtrace.words import language
from devtrace.words.catalogue import sentence
from devtrace.words.errors import named

COMMAND: Final = (sys.executable, "-m", "devtrace.fixing.notebooks.job")
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
        start: Callable[[Job], Running] | None = None,
    ) -> None:
        self.state: State | None = None
        self._changed = changed
        self._namespace = namespace
        self._raised = raised  # by the cells of the session, which went on below them
        self._start = start or in_a_process
        self._cells: Sequence[State] = []
        self._process: Running | None = None
        self._lock = threading.Lock()

    def begin(self, cells: Sequence[State], devices: str, last: str = "", *, one: bool = False) -> threading.Thread:
        """`last`: what the reader calls the last of the cells, if others are below it; `one`: fix the first error."""
        self.close()
        code = [each for each in cells if runs({"cell_type": "code", "source": each["source"]})]
        asked: Job = {
            "folder": os.getcwd(),
            "devices": devices,
            "language": language.current(),
            "last": last,
            "one": one,
            "cells": [
                {"cell": each["cell"], "source": each["source"], "raised": self._raised.get(each["cell"], "")}
                for each in code
            ],
        }
        process = self._start(asked)
        with self._lock:
            self._process, self._cells, self.state = process, cells, dict(beginning())
        self._changed()
        reader = threading.Thread(target=self._follow, args=(process,), name="devtrace-fix", daemon=True)
        reader.start()
        return reader

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
        """End the process; return whether there was one. What it has said and nobody has taken yet is passed over."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
        return process is not None

    def _follow(self, process: Running) -> None:
        def is_asked() -> bool:
            return process is self._process

        closing = ""
        try:
            with process.answers as lines:
                for line in lines:
                    self._set(self._with_what_runs(json.loads(line)), is_asked)
        except Exception as fault:  # noqa: BLE001 (whatever it is, whoever waits for the end hears of one)
            process.kill()
            closing = named(fault)
        code = process.wait()
        if self.state is not None and self.state["state"] == "running":
            closing = closing or sentence("fix.job-ended", code=code)
            self._set({**self.state, "state": "failed", "closing": closing}, is_asked)
        with self._lock:
            self._process = None if is_asked() else self._process

    def _set(self, state: State, is_still: Callable[[], bool]) -> None:
        """Make this the state unless something else was asked for while it was worked out."""
        with self._lock:
            if not is_still():
                return
            self.state = state
        self._changed()

    def _with_what_runs(self, state: State) -> State:
        """Return a state with the cells to run for its changes, in order, and those that only others need."""
        if not state["changed"]:
            return state
        after = {each["cell"]: each["after"] for each in state["changed"]}
        ids = [each["cell"] for each in self._cells]
        texts = [str(after.get(each["cell"], each["source"])) for each in self._cells]
        run = cells_to_run(texts, {ids.index(cell) for cell in after})
        needed = cells_needed(texts, run, self._namespace)
        return {**state, "run": [ids[at] for at in sorted({*run, *needed})], "needed": [ids[at] for at in needed]}


def in_a_process(asked: Job) -> Running:
    """Start a job, in a session of its own: Interrupt of a kernel goes to all of the kernel's group."""
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    running = of_process(subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=quiet, start_new_session=True))
    running.ask(asked)
    return running


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
