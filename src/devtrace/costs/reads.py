"""What a line does with a value that it reads from a device: from the source around it, and from where the value is."""

import ast
import re
from collections.abc import Callable
from itertools import chain
from typing import Final

import numpy as np

from devtrace.costs.decisions import decides_later, factor_of, is_rate, is_size, is_whole, taken_by
from devtrace.costs.loops import counter
from devtrace.costs.repeated_costs import SAMPLE, Habit
from devtrace.costs.steps import FEWEST
from devtrace.costs.writes import are_written
from devtrace.diagnosis.evidence.trace_queries import HOST, SourceNode, TraceQueries
from devtrace.source.flow import path_of
from devtrace.source.matching import alone, called_name, match_code, owner_of, same_code
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
from devtrace.trace.ids import NO_TENSOR, OpId, SiteId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, short_op_name

_STEPS_BACK: Final = 12
_ANCESTORS: Final = 40
_LONGEST: Final = 40
"""Characters of code that advice repeats."""


def is_a_choice(queries: TraceQueries, op: OpId) -> bool:
    """Return whether what is read was drawn (an action, a token), or picked without training.

    The host goes on with it.
    """
    row = next(iter(queries.carried(op)), NO_TENSOR)
    for _ in range(_STEPS_BACK):
        producer = queries.producer(row)
        if producer < 0:
            return False
        name = short_op_name(queries.op_name(producer))
        if name in DRAWS:
            return True
        if name in PICKS or (name in PICKS_SECOND and row in queries.outputs(producer)[1:]):
            return not is_trained(queries, op)
        if queries.kind(producer) not in ("view", "copy"):
            return False
        row = next(iter(queries.made_from(row)), NO_TENSOR)
    return False


def is_trained(queries: TraceQueries, op: OpId) -> bool:
    """Return whether what an op carried or read is of the work that a backward pass differentiates."""
    if queries.trace.ops.raw("phase", op) in ("backward", "optimizer"):
        return False
    forward = queries.trace.ops.ints("forward")
    rows = chain.from_iterable(queries.ancestors(row, _ANCESTORS) for row in queries.carried(op))
    made = [queries.producer(row) for row in rows if not queries.is_of_a_module(queries.base(row))]
    return bool(np.isin(forward[forward >= 0], [each for each in made if each >= 0]).any())


def was_read_before(queries: TraceQueries, op: OpId) -> bool:
    """Return whether another line read the same tensor before, and nothing has written to it since: that one waited."""
    row = next(iter(queries.inputs(op)), NO_TENSOR)
    read = queries.takers(row) if row >= 0 else []
    waited = [each for each in read if each < op and queries.kind(each) == "sync"]
    sites = queries.trace.ops.ints("site")
    is_other = bool(waited) and sites[waited[-1]] != sites[op]
    return is_other and not are_written(queries, [queries.base(row)], waited[-1], op)


def is_often(test: Callable[[TraceQueries, OpId], bool], habit: Habit) -> bool:
    """Return whether a quarter of a line's ops, or more, are of a sort."""
    some = habit.ops[:: len(habit.ops) // SAMPLE + 1]
    return sum(test(habit.queries, op) for op in some) * 4 >= len(some) > 0


def is_asked_for(queries: TraceQueries, op: OpId) -> bool:
    """Return whether a wait reads no value: the program asked for it, by `torch.cuda.synchronize()`."""
    return not queries.inputs(op)


def is_of_the_line(queries: TraceQueries, found: SourceNode, op: OpId) -> bool:
    """Return whether a line itself takes the value.

    Torch's own code may do so in a call that does not say it: `scaler.step(opt)`. An op may have to know how many
    values there are, as `x.unique()` does: its shape is the result. So it is with a mask that a package picks by.
    """
    node, name = found.node, called_name(found.node)
    if is_written(queries, op) or is_a_truth_asked(queries, found, op) or _is_given_to_scheduler(queries, found, op):
        return True
    if not isinstance(node, ast.Call):
        return not (isinstance(node, ast.Subscript) and queries.package(queries.op_site(op)))
    if any(part in queries.op_name(op) for part in COUNTS):
        return False
    if name in READS or name in TAKES_VALUES or is_move(name) or _names_the_op(queries, name, op):
        return True
    owner = owner_of(node)
    return owner is not None and full_name(owner, found.source) in ("math", "numpy", "torch") and name.islower()


def _is_given_to_scheduler(queries: TraceQueries, found: SourceNode, op: OpId) -> bool:
    """Return whether a scheduler reads what was computed for it, as ReduceLROnPlateau does.

    What `scaler.step(optimizer)` reads is filled by its own counts, and a closure's loss is its optimizer's.
    """
    is_a_step = match_code("$scheduler.step($value)", found.node) is not None
    if not is_a_step or queries.is_phase("optimizer")[op]:
        return False
    made = [queries.producer(queries.base(row)) for row in queries.carried(op)]
    return any(maker >= 0 and queries.kind(maker) == "compute" for maker in made)


def is_a_truth_asked(queries: TraceQueries, found: SourceNode, op: OpId) -> bool:
    """Return whether a condition, or a part of one, is asked for its truth, which waits for what a call in it gives."""
    around = found.source.parent(found.node)
    is_part = match_code("not $x", around) is not None or isinstance(around, ast.BoolOp)
    return "_local_scalar_dense" in queries.op_name(op) and (is_part or getattr(around, "test", None) is found.node)


def _names_the_op(queries: TraceQueries, name: str, op: OpId) -> bool:
    """Return whether a function has the name of an op or of a part of it: `index` is one of `aten.index_put`."""
    return bool(name) and re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", queries.op_name(op)) is not None


def is_within_torch(queries: TraceQueries, found: SourceNode, op: OpId) -> bool:
    """Return whether a function of torch's does it on its own: nothing of `torch.lobpcg(x)` says that it reads."""
    node = found.node
    is_its_own = _names_the_op(queries, called_name(node), op) or is_a_truth_asked(queries, found, op)
    if not isinstance(node, ast.Call) or is_its_own:
        return False
    return package(node.func, found.source) == "torch"


def spared_by(queries: TraceQueries, found: SourceNode, op: OpId) -> tuple[str, str] | None:
    """Return in words why a function of torch's waits, and the argument that spares it; None for other waits."""
    call, node = queries.trace.ops[op].call, found.node
    given = {word.arg for word in node.keywords} if isinstance(node, ast.Call) else {None}
    if None in given:  # `**options` may have it
        return None
    if "repeat_interleave" in queries.op_name(op) and "output_size" not in given:
        return worded("host-sync.to-size", "host-sync.to-size.help")
    is_encoder = call is not None and call.module.type == "TransformerEncoder"
    is_spared = is_encoder and "is_causal" not in given
    return worded("host-sync.to-compare", "host-sync.to-compare.help") if is_spared else None


def is_written(queries: TraceQueries, op: OpId) -> bool:
    """Return whether a tensor's values are made into text: `print(x)`, `f"{x}"`."""
    return queries.op_name(op) == "Tensor.__repr__"


def is_printed(found: SourceNode) -> bool:
    """Return whether code is in what `print` or a logger takes."""
    outer = {called_name(each) for each in found.source.ancestors(found.node)}
    return not outer.isdisjoint(("print", "write", "debug", "info", "warning", "log"))


def is_for_the_host(queries: TraceQueries, op: OpId) -> bool:
    """Return whether all that an op picks is copied to the host, which then waits anyway: `boxes[keep].cpu()`."""
    waiting, taken = list(queries.outputs(op)), 0
    for row in waiting:
        for taker in queries.takers(row):
            if queries.kind(taker) == "view":
                waiting += [each for each in queries.outputs(taker) if each not in waiting]
            elif queries.kind(taker) != "copy" or HOST not in map(queries.device, queries.outputs(taker)):
                return False
            else:
                taken += 1
    return taken > 0


def purpose(queries: TraceQueries, found: SourceNode, op: OpId) -> tuple[str, str]:
    """Return what the value of each step is read for, in words, and what to do instead."""
    node, statement = found.node, found.statement
    is_index = match_code("$x[$at]", node) is not None and not is_a_truth_asked(queries, found, op)  # of `words[i]`
    matched = (match_code(pattern, node) for pattern in ("$x.item()", "float($x)", "int($x)", "bool($x)"))
    read = next(filter(None, matched), {"x": getattr(node, "slice", node) if is_index else node})
    read = match_code("$x.detach()", read["x"]) or read
    text = one_line(found.source.segment(read["x"]))
    is_short = isinstance(read["x"], ast.Call | ast.Attribute | ast.Subscript | ast.Name) and len(text) <= _LONGEST
    kept = f"`{text}.detach()`" if is_short else sentence("host-sync.its-tensor")
    if spared := spared_by(queries, found, op):
        return spared
    if is_index:
        return worded("host-sync.to-read", "host-sync.to-read.help", kept=kept)
    if is_written(queries, op) and queries.package(queries.op_site(op)):
        return worded("host-sync.to-format", "host-sync.to-format.help")
    if is_printed(found) or is_written(queries, op) or isinstance(node, ast.FormattedValue | ast.JoinedStr):
        step = counter(found, read["x"])
        return worded("host-sync.to-write", "host-sync.to-write.help" if step else "host-sync.now-and-then", step=step)
    if _is_counted(queries, op):
        return worded("host-sync.to-ask", "host-sync.to-ask.help", name=_first_path(found, read["x"]))
    if updated(statement) is not None and not _gathered_in(found):
        return worded("host-sync.to-add", "host-sync.to-add.help", kept=kept)
    if called_name(node) in ("max", "min") and owner_of(node) is None:
        return worded("host-sync.to-order", "host-sync.to-order.help", name=called_name(node))
    if (test := getattr(statement, "test", None)) is not None and node in (statement, *ast.walk(test)):
        return worded("host-sync.to-decide", "host-sync.to-decide.help")
    if argument := factor_of(found):
        return worded("host-sync.to-scale", "host-sync.to-scale.help", argument=argument)
    if is_rate(found):
        return worded("host-sync.to-schedule", "host-sync.to-schedule.help")
    function = taken_by(found)
    if is_size(found) or (function and is_whole(queries, op)):
        return worded("host-sync.to-bound", "host-sync.to-bound.help")
    if decides_later(found):
        return worded("host-sync.to-decide", "host-sync.to-decide.help")
    if function:
        return worded("host-sync.to-give", "host-sync.to-give.help", function=function)
    if gathered := _gathered_in(found):
        flat = ".flatten()" if any(queries.dims[row] for row in queries.inputs(op)[:1]) else ""
        return worded("host-sync.to-keep", "host-sync.to-keep.help", kept=kept, list=f"torch.stack({gathered}){flat}")
    if match_code("$list[$at] = $value", statement) is not None:
        return worded("host-sync.to-keep", "host-sync.to-read.help", kept=kept)
    if match_code("bool($x)", node) is not None:
        return worded("host-sync.to-decide", "host-sync.to-decide.help")  # by what is called with it
    return worded("host-sync.to-read", "host-sync.to-read.help", kept=kept)


def _is_counted(queries: TraceQueries, op: OpId) -> bool:
    """Return whether nothing but numbers changes the tensor that an op asks for: a count, which Python has for free."""
    row = next(iter(queries.inputs(op)), NO_TENSOR)
    outputs = queries.trace.ops.lists("outputs")
    for _ in range(_STEPS_BACK):
        if row < 0:
            return False
        base = queries.base(row)
        writes = outputs.rows[queries.bases[outputs.flat] == base]
        later = map(OpId, writes[writes > queries.producer(base)].tolist())
        writes = [at for at in later if queries.kind(at) != "view"]
        if writes:
            others = {taken for at in writes for taken in queries.inputs(at) if queries.base(taken) != base}
            are_numbers = all(queries.device(each) == HOST and not queries.dims[each] for each in others)
            return len(writes) >= FEWEST and are_numbers
        before = [each for each in queries.made_from(row) if queries.dims[each] == 0]
        row = before[0] if len(before) == 1 == len(queries.made_from(row)) else NO_TENSOR
    return False


def _first_path(found: SourceNode, code: ast.AST) -> str:
    """Return the first variable or attribute that code reads: `self.count` of `0.1 / self.count.sqrt()`."""
    source = found.source
    paths = [part for part in ast.walk(code) if path_of(part) and not full_name(part, source)]
    read = (part for part in paths if getattr(source.parent(part), "func", None) is not part)
    return one_line(source.segment(next(read, code)))


def worded(key: str, help_key: str, **names: str) -> tuple[str, str]:
    """Return what a value is read for, in words, and what to do instead."""
    return sentence(key, **names), sentence(help_key, **names)


def expression(queries: TraceQueries, site: SiteId) -> str:
    """Return the code of a site that takes a value, on one line: of a branch its condition."""
    found = queries.source_node(site)
    if found is None:
        row = queries.site(site)
        return one_line(row.text) if row is not None else ""
    node = found.node
    if isinstance(node, ast.If | ast.While | ast.Assert | ast.FormattedValue):
        node = node.value if isinstance(node, ast.FormattedValue) else node.test
    text = found.source.segment(node)
    return one_line(text.split("\n")[0] if isinstance(node, ast.stmt) else text)


def updated(statement: ast.stmt) -> tuple[ast.expr, ast.operator, ast.expr] | None:
    """Return the variable, the operator and what is added, of `total += x` and of `total = total + x`."""
    match statement:
        case ast.AugAssign(target=target, op=op, value=value):
            return target, op, value
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=op, right=right)):
            other = right if same_code(target, left) else left if same_code(target, right) else None
            return (target, op, other) if other is not None else None
    return None


def _gathered_in(found: SourceNode) -> str:
    """Return the list that code appends a value to: `self.losses` of `self.losses.append(loss.item())`."""
    append = match_code("$list.append(...)", found.source.parent(found.node))
    is_alone = append is not None and alone(found.statement) is not None
    added = updated(found.statement)
    if added is not None and type(found.source.parent(found.node)) is ast.List:
        return one_line(found.source.segment(added[0]))  # `losses += [loss.item()]`
    return one_line(found.source.segment(append["list"])) if append is not None and is_alone else ""
