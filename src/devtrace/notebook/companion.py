"""What a feature has in a notebook's session beside tracing.

class Notes(Companion):
    magic = Magic("command.notes", "[on | off]", after="status")
    def command(self, argument, screen): ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from devtrace.api.options import Keyword

if TYPE_CHECKING:
    from collections.abc import Collection

    from devtrace.diagnosis.findings import ReportData
    from devtrace.notebook.cells import Cell, Tracing

Message = dict[str, Any]


class Screen(Protocol):
    """Takes outputs: a notebook's cell or a terminal."""

    @property
    def text_only(self) -> bool: ...

    def publish(self, data: dict[str, Any], metadata: dict[str, Any]) -> None: ...


def show(report: ReportData, screen: Screen, *, timeline: bool = True, beside: Message | None = None) -> None:
    """Publish a report: in a terminal its text, else all its forms, and `beside` with the data of the views."""
    if screen.text_only:
        screen.publish({"text/plain": str(report)}, {})
        return
    from devtrace.report.mime import mime_bundle

    screen.publish(*mime_bundle(report, timeline=timeline, beside=lambda _: beside or {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Magic(Keyword):
    """A subcommand of `%devtrace`, and the kernel's own that it comes behind in the help."""

    after: str


class Companion:
    """A feature in one session, called at its events. Each method may do nothing."""

    magic: ClassVar[Magic]

    def __init__(self, tracing: Tracing) -> None:
        self.tracing = tracing

    def command(self, argument: str, screen: Screen) -> None:
        """Run its subcommand of `%devtrace`."""

    def answer(self, message: Message) -> bool:
        """Do what a message of the panel asks for; return False if the message is not for this feature."""
        return False

    def news(self, parts: Collection[str]) -> Message:
        """Return the fields that this feature adds to an update of these parts of the panel."""
        return {}

    def cell_failed(self, cell: Cell, error: BaseException, screen: Screen) -> None:
        """A cell that was not traced has failed."""

    def cell_ended(self) -> None:
        """A cell has run to its end."""

    def close(self) -> None:
        """End with the session."""
