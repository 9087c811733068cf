"""host-sync: the host waits for a device to read a value.

Every site is counted. It is worth a warning only where the source shows a value that is read in each step although
nothing needs it then: a running sum, a log line, a guard, a mask that picks elements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Rows, SourceNode, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally, waits
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.source.matching import called_name, match_code
from devtrace.words.text_format import pluralize

OFTEN: Final = 10
"""Reading a loss now and then is normal; a warning needs a loop that waits at least this many times."""


def host_syncs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    waiting = np.flatnonzero(waits(queries))
    sites = queries.cost_users[waiting]
    for site in tally.sites("syncs"):
        ops = waiting[sites == site]
        times = int(tally["syncs"][site])
        found = queries.source_node(site)
        habit = _habit(found) if found is not None and times >= OFTEN and _in_steps(queries, ops) else None
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


def _in_steps(queries: TraceQueries, ops: Rows) -> bool:
    """Return whether device work was queued between the reads: a loop of steps, not one reading of many values."""
    if len(ops) < 2:
        return False
    devices = queries.trace.ops.ints("device")
    busy = np.cumsum((devices != queries.host) & queries.is_kind("compute"))
    return bool((np.diff(busy[ops]) > 0).mean() > 0.5)


def _habit(found: SourceNode) -> tuple[str, str] | None:
    """Return why the value is read, in words, and what to do instead; None when the source does not tell."""
    node, statement = found.node, found.statement
    if _is_now_and_then(found):
        return None
    if isinstance(node, ast.Subscript):
        words = " to count the elements that a mask picks"
        return words, "keep the shape: torch.where(mask, x, 0) or x * mask needs no count"
    if isinstance(statement, ast.AugAssign) and _is_read(node):
        words = " to add to a number of the host's"
        return words, "add the tensor itself (detached) and read the sum once at the end"
    if isinstance(statement, ast.If | ast.Assert) and (node is statement or node in ast.walk(statement.test)):
        help = "check every N steps, or let torch._assert_async or torch.where do it on the device"
        return None if _ends_the_loop(statement) else (" to decide a branch", help)
    if _is_kept_in_a_list(found):
        words = " to keep a value of each step"
        return words, "keep the detached tensor and read them all once, e.g. torch.stack(kept).tolist()"
    if isinstance(node, ast.FormattedValue | ast.JoinedStr):
        return " to write a value of each step", "write it every N steps"
    return None


def _is_now_and_then(found: SourceNode) -> bool:
    """Return whether the line is under an `if step % 100 == 0`."""
    around = (outer for outer in found.source.ancestors(found.statement) if isinstance(outer, ast.If))
    parts = (part for outer in around for part in ast.walk(outer.test))
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in parts)


def _ends_the_loop(statement: ast.If | ast.Assert) -> bool:
    """Return whether the branch only leaves the loop or function, as at the end of a text that is generated.

    That needs the value. A guard against what should never be does not.
    """
    if isinstance(statement, ast.Assert) or any(word in ast.dump(statement.test) for word in ("nan", "finite", "inf")):
        return False
    return isinstance(statement.body[-1], ast.Break | ast.Return)


def _is_read(node: ast.AST) -> bool:
    """Return whether code reads a value: `x.item()`, `float(x)`, `int(x)`."""
    names = ("item", "tolist") if match_code("$x.$method(...)", node) is not None else ("int", "float", "bool")
    return called_name(node) in names


def _is_kept_in_a_list(found: SourceNode) -> bool:
    """Return whether code reads a value into a list: `history.append(loss.item())`."""
    call = found.source.parent(found.node)
    is_append = match_code("$list.append(...)", call) is not None
    return _is_read(found.node) and is_append and isinstance(found.statement, ast.Expr)
