"""collective-device: NCCL was given a tensor of the CPU, or a device that another rank has.

dist.all_reduce(torch.tensor(loss))                     # bad: NCCL has no CPU
dist.all_reduce(torch.tensor(loss, device=device))      # good
"""

import re
from dataclasses import replace
from typing import Final

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.finding_parts import as_culprit, of_error
from devtrace.diagnosis.evidence.origins import find_origin
from devtrace.diagnosis.evidence.source_text import name_by_its_line, statement_site
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.slugs import CauseSlug
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence

_NO_BACKEND: Final = re.compile(r"No backend type associated with device type cpu")
_DUPLICATE: Final = re.compile(r"Duplicate GPU detected : rank (\d+) and rank (\d+)")


def refused_by_nccl(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    twin = _DUPLICATE.search(text)
    if twin is None and not _NO_BACKEND.search(text):
        return None
    rows = [row for row in queries.inputs(op) if (queries.device(row) == HOST) == (twin is None)]
    if not rows:
        return None
    row, device = rows[0], queries.device(rows[0])
    paths = moment.names(row)
    names = [path.text for path in paths] or [name_by_its_line(queries, queries.born(row), row)]
    origin = find_origin(queries, row)
    born = statement_site(queries, queries.born(origin.row))
    made: CauseSlug = "created-without-device" if origin.arrival == "made" else "never-moved"
    message = "collective-device.message" if twin is None else "collective-device.twin.message"
    ranks = {"rank": int(twin[1]) if twin else 0, "other": int(twin[2]) if twin else 0}
    culprit = as_culprit(queries, row, names, born, chain=(born,) if born else ())
    return Finding(
        rule="collective-device",
        **of_error(queries, op, queries.op_user(op)),
        cause=made if twin is None else "wrong-device",
        devices=(device,),
        culprit=replace(culprit, certainty="seen" if paths else "inferred"),
        message=sentence(message, name=names[0], device=device, **ranks),
        help=sentence("collective-device.help" if twin is None else "collective-device.twin.help"),
    )
