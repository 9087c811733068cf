"""host-sync: the host waits for a device to read a value.

Every site is counted. It is worth a warning only where the source shows a value that is read in each step although
nothing needs it then: a running sum, a log line, a guard, a mask that picks elements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally, waits
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.words.text_format import pluralize

OFTEN: Final = 10
"""Reading a loss now and then is normal; a warning needs a loop that waits at least this many times."""


def host_syncs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    waiting = np.flatnonzero(waits(queries))
    at = queries.cost_users[waiting]
    for site in tally.sites("syncs"):
        ops = waiting[at == site]
        times = int(tally["syncs"][site])
        place = queries.source_node(site)
        habit = _habit(place) if place is not None and times >= OFTEN and _in_steps(queries, ops) else None
        devices = sorted({queries.device_names[device] for device in queries.trace.ops.ints("device")[ops]})
        what = f"The host waited for {' and '.join(devices) or 'the device'} {pluralize(times, 'time')} here"
        yield Finding(
            rule="host-sync",
            severity="warning" if habit else "note",
            cause="",
            devices=tuple(devices),
            site=queries.site(site),
            op=int(ops[0]) if len(ops) else -1,
            count=times,
            message=f"{what}{habit[0] if habit else ', to read a value'}.",
            help=habit[1] if habit else "",
            ops=tuple(ops.tolist()),
        )


RULE: Final = CostRule(
    slug="host-sync",
    meaning="`.item()`, a condition, a mask: the program waits for the device, again and again",
    find=host_syncs,
)


def _in_steps(queries: TraceQueries, ops: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> bool:
    """Whether device work was queued between the reads: a loop of steps, not one reading of many values."""
    if len(ops) < 2:
        return False
    devices = queries.trace.ops.ints("device")
    busy = np.cumsum((devices != queries.host) & queries.is_kind("compute"))
    return bool((np.diff(busy[ops]) > 0).mean() > 0.5)


def _habit(place: SourceNode) -> tuple[str, str] | None:
    """Why the value is read, in words, and what to do instead; None when the source does not tell."""
    node, statement = place.node, place.statement
    if _now_and_then(place):
        return None
    if isinstance(node, ast.Subscript):
        return (
            " to count the elements that a mask picks",
            "keep the shape: torch.where(mask, x, 0) or x * mask needs no count",
        )
    if isinstance(statement, ast.AugAssign) and _read(node):
        return " to add to a number of the host's", "add the tensor itself (detached) and read the sum once at the end"
    if isinstance(statement, ast.If | ast.Assert) and (node is statement or _within(node, statement.test)):
        return (
            None
            if _ends_the_loop(statement)
            else (
                " to decide a branch",
                "check every N steps, or let torch._assert_async or torch.where do it on the device",
            )
        )
    if _kept(place):
        return (
            " to keep a value of each step",
            "keep the detached tensor and read them all once, e.g. torch.stack(kept).tolist()",
        )
    if isinstance(node, ast.FormattedValue | ast.JoinedStr):
        return " to write a value of each step", "write it every N steps"
    return None


def _now_and_then(place: SourceNode) -> bool:
    """Whether it stands under an `if step % 100 == 0`."""
    above = (outer for outer in place.source.ancestors(place.statement) if isinstance(outer, ast.If))
    tests = (part for outer in above for part in ast.walk(outer.test))
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in tests)


def _ends_the_loop(statement: ast.If | ast.Assert) -> bool:
    """Whether the branch only leaves the loop or function, as at the end of a text that is generated: that needs the
    value. Not so a guard against what should never be."""
    if isinstance(statement, ast.Assert) or any(word in ast.dump(statement.test) for word in ("nan", "finite", "inf")):
        return False
    return isinstance(statement.body[-1], ast.Break | ast.Return)


def _read(node: ast.AST) -> bool:
    """`x.item()`, `float(x)`, `int(x)`."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr in ("item", "tolist")
    return isinstance(function, ast.Name) and function.id in ("int", "float", "bool")


def _within(node: ast.AST, outer: ast.AST) -> bool:
    return any(inner is node for inner in ast.walk(outer))


def _kept(place: SourceNode) -> bool:
    """`history.append(loss.item())`."""
    if not _read(place.node):
        return False
    call = place.source.parent(place.node)
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and isinstance(place.statement, ast.Expr)
    )
