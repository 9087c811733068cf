"""Tensors that a step makes of nothing but factories: constants, and numbers that are drawn at random.

What it makes on the CPU in each step, to be copied, the device can make.

z = torch.randn(8, 64).to(device)           # torch.randn(8, 64, device=device)
"""

from itertools import islice
from typing import Any

from devtrace.costs.edits import made_there
from devtrace.costs.repeated_costs import Cost
from devtrace.costs.values import ANCESTORS, MOST, are_drawn, factories_of, op_of, takers_after
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.source.vocabulary import MIXES
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.text_format import one_line


def is_made_of_factories(cost: Cost) -> dict[str, Any] | None:
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
