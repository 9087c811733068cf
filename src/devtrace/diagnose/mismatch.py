from collections.abc import Iterator

from devtrace.diagnose.facts import Facts
from devtrace.report import Finding


def device_errors(facts: Facts) -> Iterator[Finding]:
    yield from ()
