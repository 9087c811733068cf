"""The traces that a session keeps, as a panel shows and fetches them."""

import numpy as np

from devtrace.notebook.cells import History, Traced
from devtrace.notebook.companion import Message
from devtrace.words.errors import DevtraceError


def find(history: History, number: int) -> Traced:
    if traced := history.numbered.get(number):
        return traced
    raise DevtraceError.of("trace-gone", number=number)


def summary(number: int, traced: Traced) -> Message:
    """Describe a trace; its outline is what `readOutline` keeps in the page: findings, ledger, sites, source."""
    from devtrace.trace.format import encode
    from devtrace.trace.subset import cut
    from devtrace.trace.views import total_time

    return {
        "trace": number,
        "label": traced.label,
        "cell": traced.cell.id,
        "seconds": total_time(traced.trace) / 1e9,
        "ops": len(traced.trace.ops) + traced.trace.truncated,
        "outline": encode(cut(traced.trace, np.zeros(len(traced.trace.ops), dtype=bool))),
    }
