"""The lines of source beside a finding: where its tensor was created, which move missed it, its way to the use.

Every form of a report shows these, in this order, each line once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.findings import Culprit, Finding, Line, Site
from devtrace.diagnosis.slugs import CREATED
from devtrace.words.catalogue import comma, sentence, speaking_of

MOST_STEPS: Final = 3
"""Lines between creation and use: those nearest to the use say most."""


def with_story(finding: Finding, ran_as: Mapping[str, int] = {}) -> Finding:
    """Return a finding with its lines in the reader's language; `ran_as`: numbers that cells had, by their files."""
    culprit = finding.culprit
    if culprit is None:
        return finding
    shown = [finding.site] if finding.site is not None else []
    with speaking_of("dtype" if finding.rule == "dtype-mismatch" else ""):
        lines = [*_each_once(_story(finding, culprit), shown)]
        lines += [Line(sentence("label.then"), site) for site in shown if _ran_as_another_cell(site, ran_as)]
        return replace(finding, lines=tuple(_numbered(line, ran_as) for line in lines))


def _ran_as_another_cell(site: Site, ran_as: Mapping[str, int]) -> str:
    """Say which number a cell had when it ran with a site's text, if it has another now."""
    count = ran_as.get(site.file, site.cell)
    return sentence("remark.ran-as", name=f"In[{count}]") if count != site.cell else ""


def _numbered(line: Line, ran_as: Mapping[str, int]) -> Line:
    remarks = (line.remark, _ran_as_another_cell(line.site, ran_as))
    return replace(line, remark=comma().join(filter(None, remarks)))


def _story(finding: Finding, culprit: Culprit) -> Iterator[Line]:
    cause = finding.cause if finding.severity == "error" else ""
    if culprit.born is not None:
        yield Line(sentence("label.created"), culprit.born, sentence(CREATED[cause]) if cause in CREATED else "")
    if culprit.moved is not None:
        label = "label.missed" if finding.severity == "error" else "label.moved"
        ran_before = cause in ("created-without-device", "created-without-dtype")
        yield Line(sentence(label), culprit.moved, sentence("remark.ran-before") if ran_before else "")
    for site in _later(culprit)[:-1][-MOST_STEPS:]:
        yield Line(sentence("label.then"), site)


def _later(culprit: Culprit) -> tuple[Site, ...]:
    """Return the lines of a tensor's way after its creation."""
    born = culprit.born
    is_birth = [born is not None and (site.file, site.line) == (born.file, born.line) for site in culprit.chain]
    return culprit.chain[is_birth.index(True) + 1 if True in is_birth else 1 :]


def _each_once(lines: Iterable[Line], shown: list[Site]) -> Iterator[Line]:
    seen = {(site.file, site.line) for site in shown}
    for index, line in enumerate(lines):
        place = line.site.file, line.site.line
        if index == 0 or place not in seen:  # the birth is shown even if it is the finding's own line
            yield line
        seen.add(place)
