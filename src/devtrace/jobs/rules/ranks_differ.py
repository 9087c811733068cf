"""ranks-differ: a parameter or buffer is on the CPU in some ranks, and on their device in the others.

if rank == 0: net.head = nn.Linear(8, 2)                # bad: of rank 0 alone, and after its move
net.head = nn.Linear(8, 2); net.to(device)              # good: in each rank, and then moved
"""

from collections import defaultdict
from collections.abc import Iterator

from devtrace.diagnosis.evidence import modules
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.trace_queries import HOST, META, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.jobs.ranks import Ranks
from devtrace.trace.ids import TensorId
from devtrace.words.catalogue import sentence


def differing_tensors(queries: TraceQueries, ranks: Ranks) -> Iterator[Finding]:
    last: dict[str, dict[int, TensorId]] = defaultdict(dict)  # one that moved has a row for each device
    for name, row in modules.tensors(queries, "parameter", "buffer"):
        if queries.device(row) != META and queries.dims[row] > 0 and ranks.of_tensor[row] >= 0:
            last[name][int(ranks.of_tensor[row])] = row
    for name, rows in last.items():
        odd = {rank: row for rank, row in rows.items() if queries.device(row) == HOST}
        if name and odd and len(odd) < len(rows):
            yield _finding(queries, name, odd, {rank: row for rank, row in rows.items() if rank not in odd})


def _finding(queries: TraceQueries, name: str, odd: dict[int, TensorId], rest: dict[int, TensorId]) -> Finding:
    row = next(iter(odd.values()))
    return Finding(
        rule="ranks-differ",
        severity="warning",
        devices=tuple(sorted({HOST, *(queries.device(each) for each in rest.values())})),
        site=queries.site(queries.user(queries.born(row))),
        op=queries.producer(row),
        culprit=as_culprit(queries, row, [name]),
        count=len(odd),
        message=sentence(
            "ranks-differ.message", name=name, ranks=list(map(str, odd)), count=len(odd), rest=len(rest), device=HOST
        ),
        help=sentence("ranks-differ.help"),
    )
