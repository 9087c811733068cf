"""host-conversion: something that takes tensors on the CPU only, as numpy does, was given one that is on a device.

plt.plot(losses.numpy())            # bad: numpy reads memory of the CPU
plt.plot(losses.cpu().numpy())      # good
"""

import ast
import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.finding_parts import as_culprit, of_error
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import assigned_names, statement_site
from devtrace.diagnosis.evidence.torchs_sentences import NUMPY, PINNED, CpuOnly, refused
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.fixes.changes import rewritten
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.source import kinds
from devtrace.source.matching import (
    called_name,
    calls_in,
    given_trait,
    is_given,
    is_path,
    keyword,
    match_code,
    nodes_of,
    only,
    operands,
    owner_of,
    written_out,
)
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import MISSING, Scope, evaluate, index_of, values
from devtrace.source.vocabulary import FACTS, READS, TAKES_VALUES, is_move, leaves_device, package
from devtrace.trace.ids import NO_TENSOR, OpId, TensorId
from devtrace.words.catalogue import sentence, unnamed

MOST_PARENTS: Final = 50
_LISTS: Final = ("list", "tuple", "sorted")
_MAKES_ARRAYS: Final = ("array", "asarray", "ascontiguousarray")
_PLAIN: Final = "cpu()"
_DETACHED: Final = "detach().cpu()"


def host_conversion(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    taker = refused(text)
    if taker is None:
        return None
    conversion = _Conversion(queries, moment, op, taker)
    row = conversion.row
    if row < 0 and taker is not NUMPY:
        return None
    device = queries.device(row) if row >= 0 else taker.refusal.findall(text)[0]
    culprit = conversion.culprit() if row >= 0 else None
    fix = conversion.fix()
    frame, argument = conversion.frame, conversion.argument
    code = frame.code.text(argument) if argument is not None and row < 0 else ""
    name = culprit.name if culprit is not None and culprit.name != unnamed() else code
    return Finding(
        rule="host-conversion",
        **of_error(queries, op),
        cause="host-boundary",
        devices=(device, HOST),
        culprit=culprit,
        bytes=queries.trace.tensors.number("bytes", row) if row >= 0 else 0,
        message=sentence(taker.key, name=name, device=device),
        help=fix.help,
        edits=fix.edits,
    )


@dataclass(frozen=True)
class _Conversion:
    """A refused tensor: its row in the trace, the expression for it, and how to write that with `.cpu()`."""

    queries: TraceQueries
    moment: FailingMoment
    op: OpId
    taker: CpuOnly

    @cached_property
    def frame(self) -> FailingFrame:
        return FailingFrame.of(self.moment, 0, HOST)

    @cached_property
    def code(self) -> ast.AST:
        """Return the line's running code; for `out[i] = pred` the assigned value. Without a frame it does nothing."""
        node, statement = self.frame.source_node.node, self.frame.source_node.statement
        return (getattr(statement, "value", None) if is_given(node) else None) or node

    @cached_property
    def argument(self) -> ast.expr | None:
        """Return the expression that is converted, where the code tells: `x` of `x.numpy()` and of `np.asarray(x)`."""
        argument = next(filter(None, map(self.taker.given_to, calls_in(self.code))), None)
        return argument if argument is not None else self._numpys_input(self.code) if self.taker is NUMPY else None

    def _numpys_input(self, code: ast.AST) -> ast.expr | None:
        for call in calls_in(code):
            owner = owner_of(call) if match_code("$x.numpy()", call) else None
            if owner is not None and not self._gives_a_cpu_value(owner):
                return owner
        match code:
            case ast.Call(args=[first, *_]) if called_name(code) in _MAKES_ARRAYS and not written_out(first):
                return first
        return None

    @cached_property
    def row(self) -> TensorId:
        """Return the row of the tensor: the code's value, a result of the line, or an input of the op; or -1."""
        results, inputs = self._results_in_the_line.values(), self.queries.inputs(self.op)
        rows = [*self._rows_of_argument(), *results, *inputs] if self.argument is not None else [*inputs, *results]
        if not self._is_an_unrecorded_result:
            read = [value.value for value in values(self.code, self.frame.source, self.frame.scope())]
            items = (_items(operand, self.frame.scope()) for operand in only(ast.expr, operands(self.code)))
            rows += [self.moment.row(value) for value in (*read, *itertools.chain.from_iterable(items))]
        row = next((row for row in rows if row is not None and self.queries.device(row) != HOST), NO_TENSOR)
        return self._named_source(row) if self.taker is PINNED and row >= 0 else row

    @cached_property
    def _is_an_unrecorded_result(self) -> bool:
        """True if the tensor is an unrecorded result of the program's own call, and no other input can be it."""
        is_computed = self.argument is not None and not is_path(self.argument)
        return is_computed and self.taker is NUMPY and not self.queries.evidence.saw_ops

    def _named_source(self, batch: TensorId) -> TensorId:
        """Return the first source of a batch that has a name and is on the batch's device, else the batch."""
        device, sources = self.queries.device(batch), self.queries.ancestors(batch, MOST_PARENTS)
        there = (row for row in sources if self.queries.device(row) == device)
        return next((row for row in there if self.moment.names(row)), batch)

    def _rows_of_argument(self) -> Iterator[TensorId | None]:
        if self.argument is None:
            return
        value, items = evaluate(self.argument, self.frame.scope()), _items(self.argument, self.frame.scope())
        if is_tensor(value) or items:
            yield from map(self.moment.row, items or [value])
        elif isinstance(self.argument, ast.Call | ast.BinOp) and self.op > 0 and self.queries.evidence.saw_ops:
            yield from self.queries.outputs(OpId(self.op - 1))

    @cached_property
    def _results_in_the_line(self) -> dict[ast.expr, TensorId]:
        """Return `{x * 2: row}` for `np.sum(x * 2)`: expressions in the failing code that ran ops, the last first."""
        results: dict[ast.expr, TensorId] = {}
        inside = {node: node for node in nodes_of(ast.expr, self.code)}
        for op in map(OpId, reversed(range(self.op)) if inside else ()):
            line = self.queries.source_node(self.queries.op_user(op))
            if line.statement is not self.frame.source_node.statement:
                break
            node = inside.get(self.queries.op_node(op).node)  # type: ignore[call-overload]
            if node is not None and node not in results:  # of several ops its last
                results.update((node, row) for row in self.queries.outputs(op)[:1])
        return results

    @cached_property
    def node(self) -> ast.expr | None:
        """Return the expression to change, which the line has for the tensor."""
        if self.argument is not None or self.row < 0:
            return self.argument
        computed = next((node for node, row in self._results_in_the_line.items() if row == self.row), None)
        node = computed or self.frame.node_of(self.row)
        return None if self._gives_a_cpu_value(node) else node

    @cached_property
    def _replacements(self) -> dict[ast.AST, str]:
        """Return `{x: "x.cpu()"}` for `np.asarray(x)`: the failing code's expressions on a device, as the CPU has them.

        For a call that is all of its arguments on a device: which numpy reads first is the package's matter.
        """
        frame, code, node = self.frame, self.code, self.node
        whole = operands(code) if code is frame.source_node.node else [code]
        parts = whole if self.argument is None else [self.argument]
        arguments = (part for part in only(ast.expr, parts) if part is not owner_of(code))
        replaced = dict(pair for part in arguments if self.taker is NUMPY for pair in self._moved_parts(part, frame))
        return replaced or ({node: frame.code.called_on(node, self._move(node, frame))} if node is not None else {})

    def _moved_parts(self, node: ast.expr, frame: FailingFrame) -> Iterator[tuple[ast.AST, str]]:
        items, parts = _items(node, frame.scope()), written_out(node)
        is_list = any(map(self._is_on_a_device, items)) and all(map(is_tensor, items))
        if is_list or (called_name(node) in _LISTS and node is self.node):
            move = _DETACHED if any(map(kinds.requires_grad, items)) else _PLAIN
            yield node, f"[each.{move} for each in {frame.code.text(node)}]"
        elif not parts and self._gives_a_device_tensor(node, frame):
            yield node, frame.code.called_on(node, self._move(node, frame))
        for part in parts:
            yield from self._moved_parts(part, frame)

    def _gives_a_device_tensor(self, node: ast.expr, frame: FailingFrame) -> bool:
        """Return whether code gives a tensor of a device: by its value, its ops, or what it is made of."""
        value, result = evaluate(node, frame.scope()), self._results_in_the_line.get(node)
        if value is not MISSING or result is not None:
            return self.queries.device(result) != HOST if result is not None else self._is_on_a_device(value)
        name = called_name(node) or getattr(node, "attr", "")
        is_no_tensor = name in FACTS or (leaves_device(name) and not is_move(name) and name not in TAKES_VALUES)
        if is_no_tensor or self._gives_a_cpu_value(node):
            return False
        sources = operands(node)
        match node:
            case ast.Subscript(value=owner):
                sources = [owner]
            case ast.Call(func=function) if package(function, frame.source, frame.variables) != "torch":
                sources = [*filter(None, [owner_of(node)])]
        return any(self._gives_a_device_tensor(source, frame) for source in sources)

    def _is_on_a_device(self, value: object) -> bool:
        return is_tensor(value) and self.moment.trait_of(value) not in (HOST, "")

    def _gives_a_cpu_value(self, node: ast.AST | None) -> bool:
        """Return whether code gives what numpy takes: `x.cpu()`, `x.to("cpu")`, `x.item()`."""
        if not isinstance(node, ast.Call):
            return False
        device = given_trait(node)
        is_named = device is not None and self.frame.names_expected_trait(device)
        return is_named or (owner_of(node) is not None and called_name(node) in ("cpu", *READS))

    # The tensor.

    def culprit(self) -> Culprit:
        queries, row = self.queries, self.row
        names = tuple(dict.fromkeys(filter(None, self._names()))) or (unnamed(),)
        born = statement_site(queries, queries.born(queries.base(row)))
        certainty = queries.certainty(row) if born is not None else "seen"
        return as_culprit(queries, row, names, born, chain=(born,) if born else (), certainty=certainty)

    def _names(self) -> Iterator[str]:
        yield from (name.text for name in self.moment.names(self.row))
        if self.node is not None:
            yield self.frame.code.text(self.node)
        yield from assigned_names(self.queries.op_node(self.queries.producer(self.row)))
        yield str(self.queries.trace.tensors.raw("name", self.row))

    # The fix.

    def fix(self) -> Fix:
        if self.taker is PINNED:
            return self._without_pinning()
        if not self._replacements:
            return Fix(sentence("host-boundary.advice"))
        key, (text, *others) = "fixed.to-cpu", self._replacements.values()
        if others:
            key, text = "fixed.all-to-cpu", self.frame.code.text_with(self.code, *self._replacements.items())
        fixes = rewritten(self.frame.code, self._replacements, key, shown=text)
        return next(fixes, Fix(sentence("host-boundary.advice")))

    def _move(self, node: ast.expr, frame: FailingFrame) -> str:
        """Return `cpu()`, or `detach().cpu()` for numpy if code gives a tensor that needs a gradient, or may."""
        row = self._results_in_the_line.get(node, self.row if node is self.node else NO_TENSOR)
        read = [value.value for value in values(node, frame.source, frame.scope()) if is_tensor(value.value)]
        is_unknown = self._is_an_unrecorded_result or not read
        needs_detach = self._requires_grad(row) if row >= 0 else is_unknown or any(map(kinds.requires_grad, read))
        is_detached = self.taker is not NUMPY or match_code("$x.detach()", node) is not None
        return _DETACHED if needs_detach and not is_detached else _PLAIN

    def _requires_grad(self, row: TensorId) -> bool:
        objects = [name.last.value for name in self.moment.names(row)]
        if objects:
            return kinds.requires_grad(objects[0])
        producer = self.queries.producer(row)
        is_differentiable = self.queries.trace.tensors[row].dtype.startswith(("float", "bfloat", "complex"))
        return is_differentiable and producer >= 0 and bool(self.queries.trace.ops.number("grad", producer))

    def _without_pinning(self) -> Fix:
        """Return the fix for a loader whose data are on the device already: `pin_memory=False`."""
        arguments = (keyword(call, "pin_memory") for call in calls_in(self.frame.body))
        pinned = next((argument for argument in arguments if match_code("True", argument) is not None), None)
        if pinned is None:
            return Fix(sentence("fixed.no-pinning"))
        return next(rewritten(self.frame.code, {pinned: "False"}, "fixed.no-pinning"))


def _items(node: ast.expr, scope: Scope) -> list[object]:
    """Return the items of a list in code, also of `losses[-10:]`, `list(losses)` and `train + test`."""
    match node:
        case ast.Subscript(value=whole, slice=ast.Slice() as part):
            bounds = (index_of(bound, scope) if bound else None for bound in (part.lower, part.upper, part.step))
            return _items(whole, scope)[slice(*(bound if type(bound) is int else None for bound in bounds))]
        case ast.Call(args=[whole], keywords=[]) if called_name(node) in _LISTS:
            return _items(whole, scope)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_items(left, scope), *_items(right, scope)]
    value = evaluate(node, scope)
    return [*value] if type(value) in (list, tuple, deque) else []
