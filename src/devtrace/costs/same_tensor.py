"""A line that copies the same tensor again and again, or what is computed on the CPU from what no step changes.

for x in batches: y = x.to(device) * weights.to(device)     # `weights` is copied in each step

share = self.edges / self.edges.sum(1)
x = share.to(x.device) @ x                  # `self.edges` is a plain attribute of the module: it stayed on the CPU
"""

from typing import Any, Final

import numpy as np

from devtrace.costs.repeated_costs import AGAIN, OFTEN, Cost
from devtrace.costs.steps import FEWEST
from devtrace.costs.values import Made, are_drawn, are_written, is_on_host
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.slugs import Severity
from devtrace.source.matching import chain, variable
from devtrace.source.parsing import own_name
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import family

_FORMS: Final = family(
    "copy.*", "copy.same", "copy.same-of-several", "copy.same-in-steps", "copy.same-in-steps-of-several"
)


def is_copied_again(cost: Cost) -> dict[str, Any] | None:
    """Find a line that copies the same tensor in every step, or in a module's forward parts of it."""
    queries, ops, severity = cost.queries, cost.ops, _severity(cost)
    sources = cost.carried if severity is not None else []
    bases = {queries.base(row) for row in sources}
    least = AGAIN if severity == "warning" else FEWEST
    if not bases or len(sources) < least * len(bases) or are_written(queries, bases, OpId(min(ops) - 1), max(ops)):
        return None
    is_one_view = len(set(sources)) == 1 and cost.count >= OFTEN
    if not is_one_view and any(queries.base(row) != row for row in sources) and not _is_part_of_a_module(cost):
        return None
    row, text = min(bases), cost.name
    name = text if '["' in text or "['" in text else name_of(queries, row) or text
    is_parameter = queries.trace.tensors[row].role == "parameter"
    form = ("same-in-steps" if severity == "note" else "same") + ("-of-several" if len(bases) > 1 else "")
    return {
        "why": _FORMS[form],
        "name": name,
        "count": len(bases),
        "severity": severity,
        "culprit": as_culprit(queries, row, [name], queries.site(queries.born(row))),
        "module": name.rpartition(".")[0] if is_parameter else "",
        "is_parameter": is_parameter,
        "is_trained": bool(np.isin(queries.trace.ops.ints("forward"), ops).any()),
    }


def _severity(cost: Cost) -> Severity | None:
    """Return how much the copies of one tensor weigh; None of so few that no loop of the user's makes them.

    Nor does a package's loop of its own, which its caller began once. What is in several calls of modules runs again.
    """
    if cost.count >= AGAIN and cost.ops:
        is_of_one_call = len(np.unique(cost.queries.trace.ops.ints("call")[cost.ops])) == 1
        is_once = not cost.is_of_the_user and cost.is_small and is_of_one_call and not cost.runs_again
        return None if is_once else "warning"
    return "note" if cost.count >= FEWEST and cost.is_of_the_user and cost.is_of_each_step else None


def _is_part_of_a_module(cost: Cost) -> bool:
    """Return whether it is a part of a module's own tensor: `self.cos[:n].to(x.device)`, not a data set's batch."""
    *_, root = chain(cost.node)
    is_own = variable(root) != "" and variable(root) == own_name(cost.found.source, root)
    return is_own and bool((cost.queries.trace.ops.ints("call")[cost.ops] >= 0).all())


def is_unchanged(cost: Cost) -> dict[str, Any] | None:
    """Find copies of what the same tensors gave in each step, where nothing has written to these."""
    queries = cost.queries
    roots = {frozenset(_roots(cost, op, since)) for since, op in cost.pairs} if cost.is_of_many_steps else set()
    first = next(iter(roots), frozenset[TensorId]())
    if len(roots) != 1 or not first or are_written(queries, first, cost.ops[0], cost.ops[-1]):
        return None
    largest = max(first, key=queries.size)
    name = name_of(queries, largest)
    born = queries.site(queries.born(largest))
    return {"name": cost.name, "culprit": as_culprit(queries, largest, [name], born) if name else None}


def _roots(cost: Cost, op: OpId, since: OpId) -> set[TensorId]:
    """Return what was there before, of all that an op takes; nothing if some of it is new data, a part, or drawn."""
    queries, made = cost.queries, Made.of(cost.queries, cost.queries.carried(op), since)
    roots = {queries.base(row) for row in made.old}
    if any(queries.size(row) < queries.size(queries.base(row)) for row in (*made.new, *made.old)):
        return set()  # a part may be another one in the next step
    is_computed = any(queries.kind(each) == "compute" for each in made.ops) and made.is_whole
    if not is_computed or made.sources or not all(is_on_host(queries, each) for each in made.ops):
        return set()
    is_drawn = are_drawn(queries, made.ops) or any("dropout" in queries.op_name(each) for each in made.ops)
    new = {queries.base(row) for row in made.new} - roots
    return roots if not is_drawn and not are_written(queries, new, since, op) else set()
