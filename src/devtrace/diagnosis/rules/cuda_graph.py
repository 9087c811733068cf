"""cuda-graph: a number on the CPU in what torch.compile was asked to run as a CUDA graph.

self.scale = torch.tensor(0.5)                          # bad: `x * self.scale` has no place in a graph
self.register_buffer("scale", torch.tensor(0.5))        # good: it moves with the model
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from devtrace.costs.repeated_costs import OFTEN
from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.mismatch import Mismatch
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Edit, Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules.explained_mismatch import explained
from devtrace.source.flow import own_name
from devtrace.source.matching import is_given, nodes_of, variable
from devtrace.words.catalogue import one_after_another, sentence


class _Number(NamedTuple):
    """A number of the CPU that came into a compiled region, and the op in which it met the device `target`.

    `region` is as `runtime.compiled` tells it.
    """

    row: int
    op: int
    target: str
    region: Any


def numbers_in_graphs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    """Explain each number as the odd tensor of its op, which it would be if it had a dimension."""
    noted = queries.live.in_graphs if queries.live is not None else ()
    numbers = [number for op, region in noted for number in _numbers(queries, op, region)]
    times = Counter(queries.base(number.row) for number in numbers)
    of_lines = defaultdict[tuple[int, int, str], list[_Number]](list)
    for number in numbers:
        if times[queries.base(number.row)] > 1 or _is_made_outside(queries, number):
            born = queries.born(queries.base(number.row))
            of_lines[int(queries.op_users[number.op]), born, number.region.fate].append(number)
    for (_, _, fate), found in of_lines.items():
        yield _finding(queries, found, fate)


def _numbers(queries: TraceQueries, op: int, region: Any) -> Iterator[_Number]:
    """Yield the numbers of the CPU beside a device's tensors. Where ops were folded, it may be another op: then none.

    One that is computed of others comes from those.
    """
    rows = queries.inputs(op) if op >= 0 else []
    devices = dict.fromkeys(queries.device(row) for row in rows if queries.device(row) != HOST)
    for row in rows if len(devices) == 1 else ():
        if queries.device(row) == HOST and queries.dims[row] == 0:
            sources = list(queries.ancestors(row, past_modules=False))
            for each in sources:
                if not any(parent in sources for parent in queries.made_from(each)):
                    yield _Number(each, op, next(iter(devices)), region)


def _is_made_outside(queries: TraceQueries, number: _Number) -> bool:
    """Return whether a function that called the region made a number; the compiler makes its own on the device."""
    site = queries.site(queries.born(queries.base(number.row)))
    return site is not None and (site.file, site.function or "<module>") in number.region.outside


def _finding(queries: TraceQueries, found: list[_Number], fate: str) -> Finding:
    first, count = found[0], len(found)
    mismatch = Mismatch(first.op, first.row, HOST, first.target)
    finding = explained(Case.of(queries, FailureSnapshot(queries), mismatch), "cuda-graph")
    buffer = _as_buffer(queries, first.row) if not finding.edits else None
    if buffer is not None:
        code = buffer.after.strip()
        finding = replace(finding, help=sentence("fixed.buffer", code=code), edits=(buffer,))
    lost = sentence(f"cuda-graph.{fate}", device=first.target, count=count)
    return replace(
        finding,
        severity="warning" if fate == "skipped" or count >= OFTEN else "note",
        message=one_after_another([finding.message, lost]),
        count=count,
        ops=tuple(each.op for each in found),
    )


def _as_buffer(queries: TraceQueries, row: int) -> Edit | None:
    """Return the edit that registers a number which a method gives its module as an attribute, once."""
    born = queries.own_node(queries.born(row))
    match born.statement if born is not None else None:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr=name) as target], value=value):
            assert born is not None
            given = [each for each in nodes_of(ast.Attribute, born.source.tree) if each.attr == name and is_given(each)]
            own, text = own_name(born.source, target), born.code.text(value)
            if len(given) == 1 and own and variable(owner) == own and "requires_grad" not in text:
                new = f'{own}.register_buffer("{name}", {text}, persistent=False)'
                return born.code.replaced(born.statement, new)
    return None
