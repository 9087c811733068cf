"""The sentence at the end of a report on what ran under autocast."""

from collections import Counter
from collections.abc import Iterator

from devtrace.diagnosis.findings import ReportData
from devtrace.report.parts import MOST_NOTES, only_failed
from devtrace.trace.views import autocasts_of_ops
from devtrace.words.catalogue import comma, sentence


def under_autocast(report: ReportData) -> Iterator[str]:
    """Yield a sentence on what ran under autocast: how many ops, in which precision, entered where."""
    regions = report.trace.autocasts
    ran = Counter(row for row in autocasts_of_ops(report.trace).tolist() if row >= 0 and regions.number("enabled", row))
    if not ran or only_failed(report):
        return
    dtypes = dict.fromkeys(str(regions[row].dtype) for row in ran)
    lines = dict.fromkeys(str(site) for row in ran if (site := regions[row].site) is not None)
    where = sentence("report.autocast-lines", lines=comma().join([*lines][:MOST_NOTES])) if lines else ""
    yield sentence("report.autocast", count=ran.total(), dtypes=comma().join(dtypes), where=where)
