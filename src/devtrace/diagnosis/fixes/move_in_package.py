"""In a package's code: the line that makes the tensor should end in `.to(self.device)`."""

from __future__ import annotations

from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.fixes.pass_device_to_factory import device_at
from devtrace.words.catalogue import sentence


def move_in_package(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Name the package's line and what it lacks."""
    queries = case.queries
    for site in dict.fromkeys((verdict.born, *(queries.born(row) for row in case.origin.path))):
        found, package = queries.source_node(site), queries.package(site)
        device = device_at(case, site, found.node) if found is not None and package else ""
        if device:
            yield Fix(sentence("fixed.in-package", package=package, site=queries.site(site), device=device))
