"""A notebook's errors fixed from its own session: `%devtrace fix`, and the panel's button."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from devtrace.fixing.notebooks.fix import NotebookFix, wait_for
from devtrace.fixing.notebooks.state import Beginning, Job
from devtrace.notebook.companion import Companion, Magic, Message, Screen
from devtrace.words.catalogue import sentence

if TYPE_CHECKING:
    from devtrace.notebook.cells import Tracing

USUAL_DEVICES = "cuda:1"
"""Devices where the session simulates none."""


class FixOfSession(Companion):
    magic = Magic("command.fix", "", after="devices")

    def __init__(self, tracing: Tracing) -> None:
        super().__init__(tracing)
        changed, names = lambda: tracing.notify("fixing"), tracing.namespace
        self.fix = NotebookFix(changed, names, tracing.raised, tracing.took, self._beginning)

    def command(self, argument: str, screen: Screen) -> None:
        """Fix the errors of the cells that ran so far, in a process of its own; the panel then offers the changes."""
        ran = dict(self.tracing.ran)
        ran.popitem()  # the cell with this command
        cells = [{"cell": id, "source": text} for id, (_, text) in ran.items()]
        thread = self.fix.begin(cells, self.tracing.simulated or USUAL_DEVICES)
        sys.stdout.write(sentence("cli.fix.caution") + "\n")
        for line in wait_for(self.fix, thread, {id: label for id, (label, _) in ran.items()}):
            sys.stdout.write(f"{line}\n")

    def _beginning(self, request: Job) -> Beginning:
        """Go on from where the kernel is, where it can be forked there; else from the top, in a process."""
        from devtrace.fixing.notebooks import trial

        return trial.beginning(self.tracing, request)

    def answer(self, message: Message) -> bool:
        match message["kind"]:
            case "fix":
                devices = self.tracing.simulated or USUAL_DEVICES
                self.fix.begin(message["cells"], devices, as_far=message["as_far"], one=message["one"])
            case "cancel_fix":
                self.fix.cancel()
            case _:
                return False
        return True

    def news(self, parts: Collection[str]) -> Message:
        return {"fixing": self.fix.state} if "fixing" in parts and self.fix.state is not None else {}

    def cell_ended(self) -> None:
        self.fix.cell_ended()

    def close(self) -> None:
        self.fix.close()
