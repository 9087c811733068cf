"""Copies of what is nothing new: the same tensor, what the CPU computes of what no step changes, what factories make.

for x in batches: y = x.to(device) * weights.to(device)     # `weights` is copied in each step

share = self.edges / self.edges.sum(1)
x = share.to(x.device) @ x                  # `self.edges` is a plain attribute of the module: it stayed on the CPU

z = torch.randn(8, 64).to(device)           # torch.randn(8, 64, device=device)
"""

from itertools import islice
from typing import Final

import numpy as np

from devtrace.costs.edits import made_there
from devtrace.costs.repeated_costs import AGAIN, OFTEN, Cost, Names
from devtrace.costs.steps import FEWEST
from devtrace.costs.values import (
    ANCESTORS,
    MOST,
    Made,
    are_drawn,
    are_written,
    factories_of,
    is_on_host,
    op_of,
    takers_after,
)
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.slugs import Severity
from devtrace.source.matching import chain, variable
from devtrace.source.parsing import own_name
from devtrace.source.vocabulary import MIXES
from devtrace.trace.ids import NO_OP, OpId, TensorId
from devtrace.words.catalogue import family
from devtrace.words.text_format import one_line

_FORMS: Final = family(
    "copy.*", "copy.same", "copy.same-of-several", "copy.same-in-steps", "copy.same-in-steps-of-several"
)


def is_copied_again(cost: Cost) -> Names | None:
    """Find a line that copies the same tensor in every step, or parts of it: `self.cos[:n].to(d)` of a `forward`."""
    queries, ops, severity = cost.queries, cost.ops, _severity(cost)
    sources = cost.carried if severity is not None else []
    bases = {queries.base(row) for row in sources}
    least = AGAIN if severity == "warning" else FEWEST
    if not bases or len(sources) < least * len(bases) or are_written(queries, bases, OpId(min(ops) - 1), max(ops)):
        return None
    is_one_view = len(set(sources)) == 1 and cost.count >= OFTEN  # parts may be new data: `data[i:j].to(d)`
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
    is_own = variable(root) != "" and variable(root) == own_name(cost.place.source, root)
    return is_own and bool((cost.queries.trace.ops.ints("call")[cost.ops] >= 0).all())


def is_unchanged(cost: Cost) -> Names | None:
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


def is_there_already(cost: Cost) -> Names | None:
    """Find `y.cpu()` twice in a step, and `x.cpu()` of an `x` that the step sent from there."""
    queries, pairs = cost.queries, cost.pairs if cost.is_of_many_steps and not cost.is_small else []
    others = [_copy_before(queries, op, since) for since, op in pairs]
    lines = {queries.op_user(other) for other in others} - {cost.site}
    return {"name": cost.name, "site": queries.site(lines.pop())} if len(lines) == 1 and NO_OP not in others else None


def _copy_before(queries: TraceQueries, op: OpId, since: OpId) -> OpId:
    """Return the op of the same step that copied what `op` copies, to or from the CPU; -1 for none."""
    copies, row = queries.trace.copies, queries.carried(op)[0]
    base, ops, sources = queries.base(row), copies.ints("op"), copies.ints("source")
    is_one = (sources >= 0) & (queries.bases[sources] == base) & (copies.ints("to") == queries.host)
    is_one |= (ops == queries.producer(base)) & (copies.ints("from") == queries.host)
    past = OpId(min(ops[is_one & (ops > since)].tolist()))
    ends = (base, row, *queries.carried(past), *queries.outputs(past))
    is_whole = len({(queries.size(end), queries.trace.tensors.raw("dtype", end)) for end in ends}) == 1
    return past if past < op and is_whole and not are_written(queries, {*map(queries.base, ends)}, past, op) else NO_OP


def is_made_of_factories(cost: Cost) -> Names | None:
    """Find what is copied in each step and comes from factories alone, by ops since the copy before."""
    queries, pairs = cost.queries, cost.pairs if cost.is_of_many_steps else []
    made = [factories_of(queries, queries.carried(op), op, since, queries.host) for since, op in pairs]
    if not made or not all(made):
        return None
    first, is_drawn = made[0][0], are_drawn(queries, [op for ops in made for op in ops])
    is_of_a_layer = queries.module(first) >= 0
    is_of_weights = is_drawn and bool(queries.inputs(first))
    is_noise = (
        is_of_weights or is_of_a_layer or 2 * sum(_joins_data(queries, op, since) for since, op in pairs) > len(pairs)
    )
    if is_drawn and not is_noise:
        return None  # a program may draw its own data too
    new = made_there(cost)
    site, born = queries.site(cost.line), queries.site(queries.op_site(first))
    is_apart = born is not None and site is not None and (born.file, born.line) != (site.file, site.line)
    return {
        "name": cost.name,
        "culprit": as_culprit(queries, queries.carried(cost.ops[1])[0], [cost.name], born) if is_apart else None,
        "is_of_weights": is_of_weights,
        "new": "" if is_drawn else new,
        "code": one_line(new) or f"torch.{op_of(queries, first)}(..., device=...)",
    }


# Noise that a step draws on the CPU: not the data of a program, which may be drawn too.


def _joins_data(queries: TraceQueries, op: OpId, since: OpId) -> bool:
    """Return whether what is drawn is added to data that was there before the step, and goes into no module first.

    `x = x + 0.1 * noise` goes on with `x` of the step before; `loss = mse(net(x), y)` has nothing but drawn data.
    """
    calls, size, drawn = queries.trace.ops.ints("call"), queries.size(queries.outputs(op)[0]), set(queries.outputs(op))

    def others(taker: OpId) -> list[TensorId]:
        """Return what is as large as the noise, of all that a taker mixes it with."""
        given = [each for each in queries.inputs(taker) if each not in drawn] if is_mixed(taker) else []
        return [each for each in given if queries.size(each) >= size + ("mul" in op_of(queries, taker))]

    def is_mixed(taker: OpId) -> bool:
        return bool(calls[taker] == calls[op]) and op_of(queries, taker).removesuffix("_") in MIXES

    def is_scaled(taker: OpId) -> bool:
        drawn.update(queries.outputs(taker) if is_mixed(taker) and not others(taker) else ())
        return drawn.issuperset(queries.outputs(taker))

    takers = islice(takers_after(queries, op, is_scaled), MOST)
    return any(_is_of_before(queries, each, size, since) for taker in takers for each in others(taker)[:1])


def _is_of_before(queries: TraceQueries, row: TensorId, size: int, since: OpId) -> bool:
    """Return whether a tensor is made of data as large that was there before the step, on whatever device."""
    rows = queries.ancestors(row, ANCESTORS, past_modules=False)
    old = (each for each in rows if queries.producer(each) <= since and queries.size(each) >= size)
    return any(not queries.is_of_a_module(queries.base(each)) for each in old)
