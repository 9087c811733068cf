"""rank-device: a rank puts tensors on the device of another rank.

Ranks on several machines have devices of one name, and a rank may use several devices. So a device is another rank's
only if that rank works there, and this one works elsewhere.

    x = x.to("cuda")                    # bad: cuda:0 in each rank
    x = x.to(f"cuda:{local_rank}")      # good
"""

import ast
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.source_text import name_by_its_line, statement_site
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.jobs.ranks import Ranks
from devtrace.source.matching import called_name, calls_in, keyword, nodes_of, owner_of, variable
from devtrace.trace.ids import SiteId, TensorId
from devtrace.words.catalogue import one_after_another, sentence

_OTHER: Final = "rank-device.other", "rank-device.other.help"


def on_the_device_of_another(queries: TraceQueries, ranks: Ranks) -> Iterator[Finding]:
    devices = queries.trace.tensors.ints("device")
    seen: dict[tuple[SiteId, int], dict[int, TensorId]] = {}  # by line and device each rank's first tensor
    for rank, own in ranks.own_device.items():
        others = {device for other, device in ranks.own_device.items() if other != rank} - {own}
        mine = np.flatnonzero((ranks.of_tensor == rank) & np.isin(devices, list(others)))
        for row in map(TensorId, mine.tolist()):
            site = queries.born(row)
            # What is computed from it there only follows.
            if site >= 0 and all(queries.device(each) != queries.device(row) for each in queries.made_from(row)):
                seen.setdefault((queries.user(site), int(devices[row])), {}).setdefault(rank, row)
    chosen = {(site, device): _reason(queries, site, queries.device_names[device]) for site, device in seen}
    explained = {(rank, key[1]) for key, rows in seen.items() if chosen[key] != _OTHER for rank in rows}
    for (site, device), rows in seen.items():
        # A line that names no device follows the tensors that others have put there.
        if chosen[site, device] != _OTHER or not {(rank, device) for rank in rows} <= explained:
            yield _finding(queries, ranks, site, device, rows, chosen[site, device])


def _finding(
    queries: TraceQueries, ranks: Ranks, site: SiteId, device: int, rows: dict[int, TensorId], why: tuple[str, str]
) -> Finding:
    name = queries.device_names[device]
    owner = next(rank for rank, own in ranks.own_device.items() if own == device and rank not in rows)
    row = next(iter(rows.values()))
    born = statement_site(queries, site)
    tensor = name_by_its_line(queries, site, row)
    message = sentence("rank-device.message", count=len(rows), ranks=list(map(str, rows)), device=name, owner=owner)
    return Finding(
        rule="rank-device",
        severity="warning",
        devices=tuple(sorted({name, *(queries.device_names[ranks.own_device[rank]] for rank in rows)})),
        site=born,
        op=queries.producer(row),
        culprit=as_culprit(queries, row, [tensor]),
        count=len(rows),
        message=one_after_another((message, sentence(why[0], device=name))),
        help=sentence(why[1], device=name),
        ops=tuple(queries.producer(each) for each in rows.values() if queries.producer(each) >= 0),
    )


def _reason(queries: TraceQueries, site: SiteId, device: str) -> tuple[str, str]:
    """Return the keys of why a line chose the device, and of what helps."""
    found = queries.source_node(site)
    calls = list(calls_in(found.statement))
    loads = (call for call in calls if called_name(call) == "load" and variable(owner_of(call)) and len(call.args) < 2)
    if any(keyword(call, "map_location") is None for call in loads):
        return "rank-device.checkpoint", "rank-device.checkpoint.help"
    texts = [node.value for node in nodes_of(ast.Constant, found.statement)]
    if device in texts:
        return "rank-device.hard-coded", "rank-device.hard-coded.help"
    kind = device.partition(":")[0]
    if kind in texts or any(called_name(call) == kind and not call.args for call in calls):
        return "rank-device.current", "rank-device.current.help"
    return _OTHER
