"""The result of `devtrace.diff`: the changes, as text, as a page, and as the plain data that the views draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from devtrace.diagnosis.findings import ReportData, Site
from devtrace.report.mime import BUDGET, mime_bundle
from devtrace.report.page import to_html
from devtrace.trace.format import encode
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import family, sentence
from devtrace.words.text_format import escape_markup, safe_line
from devtrace.words.wrapping import columns, cut, pad

WIDTH: Final = 100
VALUES: Final = 58
"""The column where before and after begin, if there is room beside the line; else they go below it."""
UNDER: Final = 11
MOST_LINES: Final = 40
MOST_ROWS: Final = 1000
"""Changes that a view is given: more than anyone reads, and no weight beside the trace."""

What = Literal["finding", "error", "device", "compute", "copies", "syncs"]
_WHATS: Final = family(
    "diff.*", "diff.finding", "diff.error", "diff.device", "diff.compute", "diff.copies", "diff.syncs"
)


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `before` or `after` is empty for what came or went; `worse`: an error or a warning came.

    A view selects `site`, `module` and `finding` (an index of the second report) for it.
    """

    what: What
    where: str
    before: str
    after: str
    worse: bool = False
    site: Site | None = None
    module: str = ""
    finding: int = -1

    @property
    def sign(self) -> str:
        return "~" if self.before and self.after else "+" if self.after else "-"

    @property
    def cells(self) -> dict[str, str]:
        """Return what a table shows of it, fit to be read."""
        texts = {
            "sign": self.sign,
            "what": sentence(_WHATS[self.what]),
            "where": self.where,
            "before": self.before,
            "after": self.after,
        }
        return {name: safe_line(text) for name, text in texts.items()}

    def __str__(self) -> str:
        values = " → ".join(filter(None, (self.before, self.after)))
        left = f"{self.sign} {pad(sentence(_WHATS[self.what]), 8)} {safe_line(self.where)}"
        beside = f"{pad(left, VALUES)}  {safe_line(values)}".rstrip()
        if columns(left) <= VALUES and columns(beside) <= WIDTH:
            return beside
        return "\n".join([cut(left, WIDTH), cut(f"{'':<{UNDER}}{safe_line(values)}", WIDTH)])


@dataclass(frozen=True)
class Comparison:
    """Changes from one trace to another, findings first; `totals` are sentences on the whole.

    The two are called by `names`, else by their titles.
    """

    before: ReportData
    after: ReportData
    changes: tuple[Change, ...]
    names: tuple[str, str] = ("", "")
    totals: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """Return whether an error or a warning came."""
        return any(change.worse for change in self.changes)

    @property
    def text(self) -> str:
        shown = [str(change) for change in self.changes[:MOST_LINES]]
        return "\n".join([self.headline, *(f"  {total}" for total in self.totals), *shown, *self._more])

    @property
    def _more(self) -> list[str]:
        more = len(self.changes) - MOST_LINES
        return [sentence("diff.more", count=more)] if more > 0 else []

    @property
    def headline(self) -> str:
        titles = [report.trace.title or sentence("diff.untitled") for report in (self.before, self.after)]
        names = [safe_line(name or title, 40) for name, title in zip(self.names, titles, strict=True)]
        key = "diff.changes" if self.changes else "diff.same"
        return sentence(key, first=names[0], second=names[1], count=len(self.changes))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Comparison: {self.headline}>"

    @property
    def data(self) -> dict[str, Any]:
        """Return the second trace as one JSON object with the changes under "comparison"; all readers take it.

        A change points to rows of this trace by `site`, `module` and `finding`, -1: none.
        """
        return encode(self.after.trace) | self._changes(self.after.trace)

    def _changes(self, trace: TraceData) -> dict[str, Any]:
        """Return the changes, with row ids of the second trace or of the part of it that a notebook holds."""
        sites = {site: id for id, site in reversed([*enumerate(map(Site.of, trace.sites))])}
        modules = {module.path: id for id, module in enumerate(trace.modules)}
        changes = {
            "headline": self.headline,
            "totals": list(self.totals),
            "worse": self.worse,
            "changes": [_plain(change, sites, modules) for change in self.changes[:MOST_ROWS]],
            "more": max(len(self.changes) - MOST_ROWS, 0),
        }
        return {"comparison": changes}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Show the table of changes above the report of the second trace."""
        shown, _ = mime_bundle(self.after, budget=BUDGET, above=self._repr_html_(), beside=self._changes)
        return shown | {"text/plain": self.text}

    def _repr_html_(self) -> str:
        cells = ([f"<td>{escape_markup(text)}</td>" for text in change.cells.values()] for change in self.changes)
        rows = "".join(f"<tr>{''.join(row)}</tr>" for row in islice(cells, MOST_LINES))
        rest = "".join(f"<p>{more}</p>" for more in self._more)
        heads = "".join(f"<th>{sentence(key)}</th>" for key in ("diff.what", "diff.where", "diff.before", "diff.after"))
        table = f"<table><tr><th></th>{heads}</tr>{rows}</table>"
        top = "<br>".join(map(escape_markup, [self.headline, *self.totals]))
        return f'<div data-devtrace="diff"><p>{top}</p>{table if self.changes else ""}{rest}</div>'

    def to_html(self, path: str | Path) -> Path:
        """Write one page: what changed, and below it all views of the second trace."""
        return to_html(self.after, path, self.data, self._repr_html_())


def _plain(change: Change, sites: Mapping[Site, int], modules: Mapping[str, int]) -> dict[str, Any]:
    return {
        **change.cells,
        "worse": change.worse,
        "site": sites.get(change.site, -1) if change.site else -1,
        "module": modules.get(change.module, -1),
        "finding": change.finding,
    }
