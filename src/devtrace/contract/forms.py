"""Forms that a command is asked for: files, a line on stdout, annotations. Each is of the same entries."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from devtrace.contract import code_scanning, findings_json
from devtrace.contract.entries import Entry, worth_showing
from devtrace.diagnosis.findings import ReportData

TO_STDOUT: Final = (findings_json.COMPACT, "-")
"""Values of `--json` that name no file: one line of the compact form, or all of the whole one."""


class Form(NamedTuple):
    """A file that was asked for, the key of its name, what writes it."""

    path: str
    what: str
    write: Callable[[Path], object]


class Forms(NamedTuple):
    """A report in the forms for programs; `root` is what paths of code scanning are relative to."""

    report: ReportData
    entries: Sequence[Entry]
    root: Path
    notes: bool = False
    error: BaseException | None = None

    @property
    def shown(self) -> list[Entry]:
        return worth_showing(self.entries, notes=self.notes)

    def files(self, json: str | None, sarif: str | None) -> Iterator[Form]:
        """Yield the files; none for what goes to stdout."""
        if json and json not in TO_STDOUT:
            whole = findings_json.findings_json(self.report, self.error, self.entries)
            yield Form(json, "cli.findings", lambda path: findings_json.write(whole, path))
        if sarif:
            log = code_scanning.sarif(self.shown, self.report.notes, self.root)
            yield Form(sarif, "cli.sarif", lambda path: findings_json.write(log, path))

    def line(self, json: str | None) -> str:
        """Return what goes to stdout, in one line; "" for nothing."""
        if json not in TO_STDOUT:
            return ""
        if json == findings_json.COMPACT:
            return findings_json.in_a_line(findings_json.compact(self.report, self.entries))
        return findings_json.in_a_line(findings_json.findings_json(self.report, self.error, self.entries))

    def annotations(self) -> str:
        """Return commands for GitHub Actions, a line each; "" elsewhere."""
        if not code_scanning.in_github_actions():
            return ""
        return "\n".join(code_scanning.github_annotations(self.shown, self.root))
