"""Why a line waits for a device: what it reads, and whether nothing needs that in each step."""

import ast
import re
from collections.abc import Callable
from typing import Final

from devtrace.costs.repeated_costs import SAMPLE, Cost
from devtrace.costs.uses import (
    comes_back,
    counter,
    decides_the_loop,
    gathered_in,
    is_bound,
    is_gone_on_by,
    matches,
    taken_by,
    updated,
)
from devtrace.costs.values import are_drawn, are_written, factories_of, first_input, is_trained, op_of, takers_after
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.slugs import Severity
from devtrace.source.defuse import rounds
from devtrace.source.matching import called_name, match_code, owner_of
from devtrace.source.vocabulary import (
    COUNTS,
    DRAWS,
    PICKS,
    PICKS_SECOND,
    READS,
    TAKES_VALUES,
    full_name,
    is_move,
    package,
)
from devtrace.trace.ids import NO_TENSOR, OpId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line

_STEPS_BACK: Final = 12
_LONGEST: Final = 40
"""Characters of code that advice repeats."""
_FEW: Final = 4
"""Most numbers that are drawn at a time; more may be a program's data."""
_PRINTS: Final = ("print", "write", "debug", "info", "warning", "log")


# Whether nothing needs the value in each step.


def is_needless(cost: Cost) -> bool:
    """Return whether a line waits in each step for what nothing needs in that step: `total += loss.item()`."""
    could_opt_out = cost.is_of_the_user and (lacks_is_causal(cost) or lacks_validate_args(cost) is not None)
    if is_asked_for(cost.queries, cost.ops[0]) or not (could_opt_out or is_of_the_line(cost)):
        return False
    # A function of torch's may have a loop of its own: nothing of `torch.lobpcg(x)` says that it reads.
    is_users_own = cost.is_of_the_user and not is_of_torch(cost)
    if not cost.pace.is_of_each_step or not (is_users_own or cost.runs_again):
        return False
    if is_drawn_from_nothing(cost):
        return True
    reasons_to_wait = (is_a_choice, _another_line_waited, _goes_to_the_host)
    if any(is_often(reason, cost) for reason in reasons_to_wait) or comes_back(cost.place):
        return False
    # Several reads in a step are of a loop within the step: that may be what the value decides.
    is_once_in_step = cost.pace.trains and (cost.count <= cost.pace.steps or is_summed_at_once(cost))
    is_spared = is_once_in_step or not decides_the_loop(cost.place)
    return is_spared and not (cost.queries.package(cost.line) and _is_needed_by_package(cost))


def _is_needed_by_package(cost: Cost) -> bool:
    """Return whether a package's line reads what its caller cannot spare.

    It reads once in a step for a branch or a size, or the caller has no training step of its own.
    """
    if is_written(cost):
        return _is_printed(cost)
    asks_in_loop = cost.count > cost.pace.steps and bool([*cost.place.loops, *rounds(cost.place.source, cost.node)])
    is_number = _is_whole_number(cost) or op_of(cost.queries, cost.ops[0]) == "equal"  # which asks for a truth
    goes_on_by_it = not asks_in_loop and is_gone_on_by(cost.place, is_number=is_number)
    return goes_on_by_it or not cost.pace.trains or cost.trains_alone


def is_often(test: Callable[[TraceQueries, OpId], bool], cost: Cost) -> bool:
    """Return whether a test is true of a quarter of a line's ops, or more."""
    sample = cost.ops[:: len(cost.ops) // SAMPLE + 1]
    return sum(test(cost.queries, op) for op in sample) * 4 >= len(sample) > 0


def is_a_choice(queries: TraceQueries, op: OpId) -> bool:
    """Return whether what is read was drawn (an action, a token), or picked without training: the host needs it."""
    tensor = next(iter(queries.carried(op)), NO_TENSOR)
    for _ in range(_STEPS_BACK):
        producer = queries.producer(tensor)
        if producer < 0:
            return False
        name = op_of(queries, producer)
        if name in DRAWS:
            return True
        if name in PICKS or (name in PICKS_SECOND and tensor in queries.outputs(producer)[1:]):
            return not is_trained(queries, op)
        if queries.kind(producer) not in ("view", "copy"):
            return False
        tensor = next(iter(queries.made_from(tensor)), NO_TENSOR)
    return False


def _another_line_waited(queries: TraceQueries, op: OpId) -> bool:
    """Return whether another line read the same tensor before, and nothing has written to it since: that one waited."""
    tensor = first_input(queries, op)
    takers = queries.takers(tensor) if tensor >= 0 else []
    waits = [taker for taker in takers if taker < op and queries.kind(taker) == "sync"]
    sites = queries.trace.ops.ints("site")
    is_other_line = bool(waits) and sites[waits[-1]] != sites[op]
    return is_other_line and not are_written(queries, [queries.base(tensor)], waits[-1], op)


def _goes_to_the_host(queries: TraceQueries, op: OpId) -> bool:
    """Return whether all that an op picks is copied to the host, which then waits anyway: `boxes[keep].cpu()`."""
    is_view = queries.is_kind("view")
    takers = [taker for taker in takers_after(queries, op, lambda taker: bool(is_view[taker])) if not is_view[taker]]
    copies = [taker for taker in takers if queries.kind(taker) == "copy"]
    return 0 < len(takers) == sum(HOST in map(queries.device, queries.outputs(copy)) for copy in copies)


def is_asked_for(queries: TraceQueries, op: OpId) -> bool:
    """Return whether a wait reads no value: the program asked for it, by `torch.cuda.synchronize()`."""
    return not queries.inputs(op)


def is_written(cost: Cost) -> bool:
    """Return whether a tensor's values are made into text: `print(x)`, `f"{x}"`."""
    return cost.queries.op_name(cost.ops[0]) == "Tensor.__repr__"


def _is_printed(cost: Cost) -> bool:
    """Return whether code is an argument of `print` or of a logger, or in one."""
    return any(called_name(outer) in _PRINTS for outer in cost.place.source.ancestors(cost.node))


# Whether the line itself reads.


def is_of_the_line(cost: Cost) -> bool:
    """Return whether the line itself reads the value, as `loss.item()` and `if x > 0` do.

    Torch's own code may read in a call that does not say so: `scaler.step(opt)`. An op may have to count its results,
    which decide its shape, as `x.unique()` does. So it is with a mask that a package picks by.
    """
    node, name, op = cost.node, called_name(cost.node), cost.ops[0]
    if is_written(cost) or is_truth_asked(cost) or _is_read_by_scheduler(cost):
        return True
    if not isinstance(node, ast.Call):
        return not (isinstance(node, ast.Subscript) and cost.queries.package(cost.queries.op_site(op)))
    if any(part in cost.queries.op_name(op) for part in COUNTS):
        return False
    if name in READS or name in TAKES_VALUES or is_move(name) or names_the_op(cost, op) or takes_number(cost):
        return True
    owner = owner_of(node)
    return owner is not None and full_name(owner, cost.place.source) in ("math", "numpy", "torch") and name.islower()


def _is_read_by_scheduler(cost: Cost) -> bool:
    """Return whether a scheduler reads what was computed for it, as ReduceLROnPlateau does.

    What `scaler.step(optimizer)` reads is filled by its own counts, and a closure's loss is its optimizer's.
    """
    queries, op = cost.queries, cost.ops[0]
    makers = [queries.producer(queries.base(tensor)) for tensor in queries.carried(op)]
    is_computed = any(maker >= 0 and queries.kind(maker) == "compute" for maker in makers)
    is_step = match_code("$scheduler.step($value)", cost.node) is not None
    return is_step and is_computed and not queries.is_phase("optimizer")[op]


def is_truth_asked(cost: Cost) -> bool:
    """Return whether the line waits as the condition `x.any()`, or a part of it, is asked for its truth."""
    parent = cost.place.source.parent(cost.node)
    is_part = match_code("not $x", parent) is not None or isinstance(parent, ast.BoolOp)
    is_read = "_local_scalar_dense" in cost.queries.op_name(cost.ops[0])
    return is_read and (is_part or getattr(parent, "test", None) is cost.node)


def is_of_torch(cost: Cost) -> bool:
    """Return whether code calls a function of torch's by its name."""
    return isinstance(cost.node, ast.Call) and package(cost.node.func, cost.place.source) == "torch"


def names_the_op(cost: Cost, op: OpId) -> bool:
    """Return whether the called function is a word of the op's name: `index` is one of `aten.index_put`."""
    name = re.escape(called_name(cost.node))
    return name != "" and re.search(rf"(?<![a-z]){name}(?![a-z])", cost.queries.op_name(op)) is not None


# What the value is, and what it is read for: the traits of the table.


def is_drawn_from_nothing(cost: Cost) -> bool:
    """Return whether a line reads what each step draws by factories alone: a coin, a shift, the corner of a crop."""
    queries = cost.queries
    reads = [(before, op) for before, op in cost.pairs if "_local_scalar_dense" in queries.op_name(op)]
    factories = [factories_of(queries, queries.inputs(op), op, before) for before, op in reads]
    ops = [op for factories_of_read in factories for op in factories_of_read]
    largest = max((queries.size(tensor) for op in ops for tensor in queries.outputs(op)), default=0)
    return bool(factories) and all(factories) and are_drawn(queries, ops) and largest <= _FEW


def lacks_is_causal(cost: Cost) -> bool:
    """Return whether torch's encoder reads the mask, as its call has no `is_causal=`, nor `**options` with it."""
    call = cost.queries.trace.ops[cost.ops[0]].call
    if not isinstance(cost.node, ast.Call) or call is None or call.module.type != "TransformerEncoder":
        return False
    return {None, "is_causal"}.isdisjoint(word.arg for word in cost.node.keywords)


def lacks_validate_args(cost: Cost) -> dict[str, Severity] | None:
    """Find `Normal(mean, std)`, a distribution that reads its parameters, as nobody said `validate_args=False`.

    That is a note: a step that reads what it draws waits for the device anyway.
    """
    name = full_name(cost.node.func, cost.place.source) if isinstance(cost.node, ast.Call) else ""
    is_distribution = name.startswith("torch.distributions.") and called_name(cost.node)[0].isupper()
    keywords = {word.arg for word in getattr(cost.node, "keywords", ())}  # None: `**options` may have it
    is_read = "_local_scalar_dense" in cost.queries.op_name(cost.ops[0])
    lacks_it = keywords.isdisjoint((None, "validate_args"))
    return {"severity": "note"} if is_distribution and is_read and lacks_it else None


def takes_number(cost: Cost) -> dict[str, str] | None:
    """Find a call that reads its own argument, for which torch needs a number: `x.add_(y, alpha=rate)`."""
    queries, op = cost.queries, cost.ops[0]
    next_op = OpId(min(op + 1, len(queries.trace.ops) - 1))
    is_read = "_local_scalar_dense" in queries.op_name(op) and queries.op_site(next_op) == queries.op_site(op)
    return {"function": called_name(cost.node)} if is_read and names_the_op(cost, next_op) else None


def is_shown(cost: Cost) -> dict[str, str | bool] | None:
    """Find a value that is printed or put into a text, and what counts the steps. Nobody reads a package's text."""
    if is_written(cost) and cost.queries.package(cost.queries.op_site(cost.ops[0])):
        return {"why": "host-sync.to-format", "is_of_package": True}
    if isinstance(cost.node, ast.FormattedValue | ast.JoinedStr) or is_written(cost) or _is_printed(cost):
        return {"step": counter(cost.place, read_code(cost)), "is_of_package": False}
    return None


def is_added(cost: Cost) -> bool:
    return updated(cost.place.statement) is not None and not gathered_in(cost.place)


def is_summed_at_once(cost: Cost) -> bool:
    """Return whether a line reads several numbers to add them up: `sum(p.norm().item() for p in net.parameters())`."""
    around = (code for code in cost.place.source.ancestors(cost.node) if code is not cost.place.statement)
    innermost_loop = next(rounds(cost.place.source, cost.node), None)
    return "sum" in map(called_name, around) and isinstance(innermost_loop, ast.comprehension)


def function(cost: Cost) -> dict[str, str]:
    return {"name": called_name(cost.node)}


def is_tested(cost: Cost) -> bool:
    """Return whether the value is a part of the statement's own condition."""
    statement = cost.place.statement
    test = getattr(statement, "test", None)
    return test is not None and (cost.node is statement or cost.node in ast.walk(test))


def is_size(cost: Cost) -> bool:
    return is_bound(cost.place) or (bool(taken_by(cost.place)) and _is_whole_number(cost))


def _is_whole_number(cost: Cost) -> bool:
    tensor = first_input(cost.queries, cost.ops[0])
    return tensor >= 0 and cost.queries.trace.tensors[tensor].dtype.startswith(("int", "uint"))


def is_gathered(cost: Cost) -> dict[str, str] | None:
    """Find a value that is added to a list, `losses.append(loss.item())`, and the code for a tensor of the list."""
    name = gathered_in(cost.place)
    flatten = ".flatten()" if any(cost.queries.dims[cost.queries.inputs(cost.ops[0])[:1]]) else ""
    return {"list": f"torch.stack({name}){flatten}"} if name else None


def read_code(cost: Cost) -> ast.AST:
    """Return the code of the tensor that a line reads: `loss` of `loss.detach().item()`, `i` of `names[i]`."""
    read = matches(cost.node, "$x.item()", "float($x)", "int($x)", "bool($x)")
    item = matches(cost.node, "$x[$at]") if not is_truth_asked(cost) else None
    code = read["x"] if read is not None else item["at"] if item is not None else cost.node
    detached = matches(code, "$x.detach()")
    return detached["x"] if detached is not None else code


def kept(cost: Cost) -> str:
    """Return what advice says to keep in place of the number that a line reads: `loss.detach()`."""
    code = read_code(cost)
    text = one_line(cost.place.source.segment(code))
    is_short = isinstance(code, ast.Call | ast.Attribute | ast.Subscript | ast.Name) and len(text) <= _LONGEST
    return f"`{text}.detach()`" if is_short else sentence("host-sync.its-tensor")
