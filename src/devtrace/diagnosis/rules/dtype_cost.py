"""dtype-cost: casts that each step makes for nothing, and float64 that came with an array into a float32 model.

for x, y in batches: loss = mse(model(x), torch.from_numpy(y))              # bad: the loss is float64
for x, y in batches: loss = mse(model(x), torch.from_numpy(y).float())      # good
"""

from collections.abc import Iterator

from devtrace.costs.casts import casts_of_each_step, of_casts_again, of_casts_back
from devtrace.costs.cost_findings import finding
from devtrace.costs.float64 import float64_that_enters
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally


def dtype_costs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    for habit in casts_of_each_step(queries, tally):
        needless = of_casts_back(habit) or of_casts_again(habit)
        if needless is not None:
            yield finding("dtype-cost", needless.habit, (needless,), needless.why, None)
    yield from float64_that_enters(queries, tally)
