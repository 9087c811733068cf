"""Trace and Report: the results of a recording, with the methods that a user calls on them, and what makes them.

    trace.save("run.devtrace")          report.to_html("run.html")
    devtrace.load("run.devtrace")       devtrace.diagnose(trace)

The data itself is `TraceData` and `ReportData`. The classes here are above every format that they can be turned into.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from devtrace.diagnosis.findings import SEVERITIES, ReportData
from devtrace.features import need
from devtrace.trace.tables import TraceData
from devtrace.words.errors import UsageError, expect_kind
from devtrace.words.text_format import pluralize

if TYPE_CHECKING:
    import pandas
    from plotly.graph_objects import Figure

    from devtrace.diagnosis.saved_case import Case
    from devtrace.source.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Trace(TraceData):
    """Tables with the data of one run. You cannot change a trace."""

    case: Case | None = field(default=None, repr=False)
    """What its report was made of."""
    _report: list[Report] = field(default_factory=list, repr=False, init=False)

    @classmethod
    def of(cls, data: TraceData) -> Trace:
        """Give tables the user's methods; a Trace stays itself."""
        return data if isinstance(data, cls) else cls(**_values(data))

    def save(self, path: str | Path, *, source: bool = True, case: bool = False) -> Path:
        """Write a file that `devtrace.load` and JupyterLab can open. `source=False` leaves your code out.

        With `case=True` the file also has the data behind the report, so that `devtrace.diagnose` can make it again.
        """
        from devtrace.trace.format import save
        from devtrace.trace.subset import without_source

        shown = self if source else without_source(self)
        if not case:
            return save(shown, path)
        if self.case is None:
            raise UsageError.of("case-missing")
        from devtrace.diagnosis.saved_case import to_json, without_names

        return save(shown, path, case=to_json(self.case if source else without_names(self.case)))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "case": None}  # stand-ins are of this process

    def to_pandas(self) -> dict[str, pandas.DataFrame]:
        frames: dict[str, pandas.DataFrame] = need("export", "pandas")(self)
        return frames

    def to_perfetto(self, path: str | Path) -> Path:
        file: Path = need("export", "perfetto")(self, path)
        return file

    def __repr__(self) -> str:
        title = f" {self.title!r}" if self.title else ""
        return f"<Trace{title}: {len(self.ops):,} ops on {', '.join(self.devices) or 'no device'}>"


@dataclass(frozen=True)
class Report(ReportData):
    """Findings of one trace, and counts for each line of the program."""

    trace: Trace

    @classmethod
    def of(cls, data: ReportData, case: Case | None = None) -> Report:
        """Give findings the user's methods; a Report stays itself."""
        if isinstance(data, cls):
            return data
        return cls(**{**_values(data), "trace": replace(Trace.of(data.trace), case=case)})

    @cached_property
    def text(self) -> str:
        from devtrace.report.text import text

        return text(self)

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one html file, which opens offline."""
        from devtrace.report.page import to_html

        return to_html(self, path)

    def figure(self, kind: str, theme: Literal["light", "dark"] = "light") -> Figure:
        """Return a plotly Figure; `kind` is "devices" or "dtypes"."""
        figure: Figure = need("figure", "plotly")(self.trace, kind, theme)
        return figure

    def _repr_mimebundle_(self, *_: object, **__: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """A report that a cell ends with shows as it does below a traced cell."""
        from devtrace.report.mime import mime_bundle

        return mime_bundle(self)

    def _display_(self) -> object:
        """Show the same in marimo, which asks by this name and runs scripts within frames only."""
        from devtrace.report.mime import mime_bundle
        from devtrace.report.renderer import for_marimo

        return for_marimo(mime_bundle(self)[0]["text/html"])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self.findings)
        counted = ", ".join(pluralize(counts[severity], severity) for severity in SEVERITIES if counts[severity])
        return f"<Report: {counted or 'no findings'} of {self.trace!r}>"


def diagnose(trace: TraceData, snapshot: Snapshot | None = None) -> Report:
    """Return the report of a trace. devtrace itself passes `snapshot` (the program's variables, to name tensors)."""
    from devtrace.diagnosis import diagnose as diagnosis
    from devtrace.diagnosis.saved_case import Case

    expect_kind("diagnose", trace, TraceData, error="wrong-argument.trace")
    api_trace = Trace.of(trace)
    if not api_trace._report:
        saved_case = api_trace.case if api_trace.case is not None and api_trace.case.files is not None else None
        case = saved_case if snapshot is None else Case(api_trace, snapshot)
        try:
            report = Report.of(diagnosis.diagnose(case or Case(api_trace)), case)
        finally:
            if snapshot is not None:
                snapshot.let_go()
        api_trace._report[:] = report.trace._report[:] = [report]
    return api_trace._report[0]


def with_note(report: Report, note: str) -> Report:
    """Return the report with one more sentence at its end; its trace keeps both."""
    trace = replace(report.trace, notes=(*report.trace.notes, note))
    noted = replace(report, trace=trace, notes=(*report.notes, note))
    trace._report[:] = [noted]
    return noted


def load(*files: str | Path) -> Trace:
    """Read a saved trace. If you pass the files of a job's ranks, return one trace of all ranks."""
    from devtrace.diagnosis.saved_case import of_json
    from devtrace.trace import format

    def decoded(data: Any) -> Trace:
        return replace(Trace.of(format.decode(data)), case=of_json(data.get("case")))

    for file in files:
        expect_kind("load", file, str, PathLike, error="wrong-argument.file")
    if len(files) == 1:
        return format.read(files[0], decoded)
    if not files:
        raise UsageError.of("load-nothing")
    return Trace.of(need("loader", "job")(files))


def _values(data: TraceData | ReportData) -> dict[str, Any]:
    """Return the fields that are arguments of the data class, by name."""
    return {member.name: getattr(data, member.name) for member in fields(data) if member.init}
