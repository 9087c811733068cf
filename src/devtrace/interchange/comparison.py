"""The result of `devtrace.diff`: the changes, as text."""

from dataclasses import dataclass
from typing import Final, Literal

from devtrace.diagnosis.findings import ReportData
from devtrace.words.catalogue import family, sentence
from devtrace.words.text_format import safe_line
from devtrace.words.wrapping import columns, cut, pad

WIDTH: Final = 100
VALUES: Final = 58
"""The column where before and after begin, if there is room beside the line; else they go below it."""
UNDER: Final = 11
MOST_LINES: Final = 40

What = Literal["finding", "error", "device", "copies", "syncs"]
_WHATS: Final = family("diff.*", "diff.finding", "diff.error", "diff.device", "diff.copies", "diff.syncs")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `before` or `after` is empty for what came or went; `worse`: an error or a warning came."""

    what: What
    where: str
    before: str
    after: str
    worse: bool = False

    @property
    def sign(self) -> str:
        return "~" if self.before and self.after else "+" if self.after else "-"

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
        lines, more = [*map(str, self.changes[:MOST_LINES])], len(self.changes) - MOST_LINES
        rest = [sentence("diff.more", count=more)] if more > 0 else []
        return "\n".join([self.headline, *(f"  {total}" for total in self.totals), *lines, *rest])

    @property
    def headline(self) -> str:
        titles = [report.trace.title or sentence("diff.untitled") for report in (self.before, self.after)]
        names = [safe_line(name or title, 40) for name, title in zip(self.names, titles, strict=True)]
        key = "diff.changes" if self.changes else "diff.same"
        return sentence(key, first=names[0], second=names[1], count=len(self.changes))

    def __repr__(self) -> str:
        return self.text
