"""host-conversion: something that takes tensors on the CPU only, as numpy does, was given one that is on a device.

plt.plot(losses.numpy())            # bad: numpy reads memory of the CPU
plt.plot(losses.cpu().numpy())      # good
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.finding_parts import as_culprit, of_error
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import assigned_names, statement_site
from devtrace.diagnosis.evidence.torchs_sentences import NUMPY, PINNED, CpuOnly, refused
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.snapshot import kinds
from devtrace.source.matching import called_name, calls_in, is_given, is_path, keyword, match_code, nodes_of, owner_of
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import MISSING, Value, evaluate, values
from devtrace.trace.ids import NO_TENSOR, OpId, TensorId
from devtrace.words.catalogue import sentence, unnamed
from devtrace.words.text_format import one_line

MOST_PARENTS: Final = 50
_LISTS: Final = ("list", "tuple", "sorted")


def host_conversion(queries: TraceQueries, snapshot: FailureSnapshot, op: OpId, text: str) -> Finding | None:
    taker = refused(text)
    if taker is None:
        return None
    conversion = _Conversion(queries, snapshot, op, taker)
    row = conversion.row
    if row < 0 and taker is not NUMPY:
        return None
    device = queries.device(row) if row >= 0 else taker.refusal.findall(text)[0]
    culprit = conversion.culprit() if row >= 0 else None
    fix = conversion.fix()
    name = culprit.name if culprit is not None and culprit.name != unnamed() else "" if row >= 0 else conversion.text
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
    """A refused tensor: its row in the trace, the expression that gave it, and how to give it from the CPU."""

    queries: TraceQueries
    snapshot: FailureSnapshot
    op: OpId
    taker: CpuOnly

    @cached_property
    def frame(self) -> FailingFrame | None:
        return FailingFrame.of(self.snapshot, 0, HOST)

    @cached_property
    def code(self) -> ast.AST | None:
        """Return the line's running code; for `out[i] = pred` the assigned value."""
        if self.frame is None:
            return None
        node, statement = self.frame.source_node.node, self.frame.source_node.statement
        return statement.value if is_given(node) and isinstance(statement, ast.Assign | ast.AugAssign) else node

    @cached_property
    def given(self) -> ast.expr | None:
        """Return the expression that is converted, where the code tells: `x` of `x.numpy()` and of `np.asarray(x)`."""
        if self.code is None:
            return None
        argument = next(filter(None, map(self.taker.given_to, calls_in(self.code))), None)
        return argument if argument is not None else _converted(self.code) if self.taker is NUMPY else None

    @cached_property
    def row(self) -> TensorId:
        """Return the row of the tensor: the code's value, a result of the line, or an input of the op; or -1."""
        rows = [*self._of_given(), *self._made_in_the_line, *self.queries.inputs(self.op)]
        if not self._is_a_calls_own:
            rows += [self.snapshot.row(value.value) for value in self._values()]
        found = next((row for row in rows if row is not None and self.queries.device(row) != HOST), NO_TENSOR)
        return self._of_the_data(found) if self.taker is PINNED and found >= 0 else found

    @cached_property
    def _is_a_calls_own(self) -> bool:
        """True if the tensor is an unrecorded result of the program's own call, and no other input can be it."""
        is_made = self.given is not None and not is_path(self.given)
        return is_made and self.taker is NUMPY and not self.queries.evidence.saw_ops

    @property
    def text(self) -> str:
        return self.frame.code.text(self.given) if self.frame is not None and self.given is not None else ""

    def _of_the_data(self, batch: TensorId) -> TensorId:
        """Return the named tensor among the sources of a batch."""
        rows = [batch]
        for row in rows:
            if self.snapshot.names(row):
                return row
            maker = self.queries.producer(row)
            parents = self.queries.inputs(maker) if maker >= 0 and len(rows) < MOST_PARENTS else []
            rows += [parent for parent in parents if self.queries.device(parent) == self.queries.device(batch)]
        return batch

    def _of_given(self) -> Iterator[TensorId | None]:
        if self.given is None or self.frame is None:
            return
        value = evaluate(self.given, self.frame.scope())
        if is_tensor(value):
            yield self.snapshot.row(value)
        elif isinstance(self.given, ast.Call | ast.BinOp) and self.op > 0 and self.queries.evidence.saw_ops:
            yield from self.queries.outputs(OpId(self.op - 1))

    @cached_property
    def _made_in_the_line(self) -> dict[TensorId, ast.expr]:
        """Return the last result of an expression in the failing code, with the expression."""
        inside = set(ast.walk(self.code)) if self.code is not None else set()
        op = OpId(self.op - 1)
        while op >= 0 and self._is_of_the_line(op):
            made = self.queries.op_node(op)
            if made is not None and made.node in inside and isinstance(made.node, ast.expr):
                rows = [row for row in self.queries.outputs(op) if self.queries.device(row) != HOST]
                if rows:
                    return dict.fromkeys(rows, made.node)
            op = OpId(op - 1)
        return {}

    def _is_of_the_line(self, op: OpId) -> bool:
        """Return whether the user's line of an op is the one that failed."""
        own = [self.queries.user(self.queries.op_site(each)) for each in (op, self.op)]
        sites = [self.queries.site(each) for each in own]
        return sites[0] is not None and sites[1] is not None and sites[0].line == sites[1].line

    def _values(self) -> list[Value]:
        if self.frame is None or self.code is None:
            return []
        found = values(self.code, self.frame.source, self.frame.scope())
        return [value for value in found if is_tensor(value.value)]

    @cached_property
    def node(self) -> ast.expr | None:
        """Return the expression to change, which the line has for the tensor."""
        if self.given is not None or self.frame is None or self.row < 0:
            return self.given
        return self._made_in_the_line.get(self.row) or self.frame.node_of(self.row)

    # The tensor.

    def culprit(self) -> Culprit:
        queries, row = self.queries, self.row
        names = tuple(dict.fromkeys(filter(None, self._names()))) or (unnamed(),)
        born = statement_site(queries, queries.born(queries.base(row)))
        certainty = queries.certainty(row) if born is not None else "seen"
        return as_culprit(queries, row, names, born, chain=(born,) if born else (), certainty=certainty)

    def _names(self) -> Iterator[str]:
        yield from (name.text for name in self.snapshot.names(self.row))
        if self.frame is not None and self.node is not None:
            yield self.frame.code.text(self.node)
        made = self.queries.op_node(self.queries.producer(self.row))
        yield from assigned_names(made) if made is not None else ()
        yield str(self.queries.trace.tensors.raw("name", self.row))

    # The fix.

    def fix(self) -> Fix:
        if self.taker is PINNED:
            return self._without_pinning()
        if self.frame is not None and self.node is not None and not self._is_list(self.node):
            return self._replaced(self.node, self.frame.code.called_on(self.node, self._way))
        return self._of_each() or Fix(sentence("host-boundary.advice"))

    def _replaced(self, node: ast.expr, new: str) -> Fix:
        edit = self.frame.code.replaced(node, new) if self.frame is not None else None
        if edit is None:
            return Fix(sentence("host-boundary.advice"))
        return Fix(sentence("fixed.to-cpu", code=one_line(new)), (edit,))

    @cached_property
    def _way(self) -> str:
        is_to_detach = self._requires_grad() or (self.row < 0 and self._is_a_calls_own)
        return "detach().cpu()" if self.taker is NUMPY and is_to_detach else "cpu()"

    def _requires_grad(self) -> bool:
        if self.row < 0 or match_code("$x.detach()", self.node):
            return False
        objects = [name.last.value for name in self.snapshot.names(self.row)]
        if objects:
            return kinds.requires_grad(objects[0])
        maker = self.queries.producer(self.row)
        is_number = self.queries.trace.tensors[self.row].dtype.startswith(("float", "bfloat", "complex"))
        return is_number and maker >= 0 and bool(self.queries.trace.ops.number("grad", maker))

    def _of_each(self) -> Fix | None:
        """Return the fix for a list of tensors: `np.mean([each.cpu() for each in losses])`."""
        if self.frame is None or self.code is None or self.taker is not NUMPY:
            return None
        for node in nodes_of(ast.expr, self.code):
            value = evaluate(node, self.frame.scope())
            is_list = type(value) in (list, tuple) and len(value) > 0 and all(map(is_tensor, value))
            has_it = is_list and self.row in map(self.snapshot.row, value)
            if has_it or (node is self.node and value is MISSING):
                return self._replaced(node, f"[each.{self._way} for each in {self.frame.code.text(node)}]")
        return None

    def _is_list(self, node: ast.expr) -> bool:
        """Return whether an expression is a list, not a tensor: a variable's list, or a list display."""
        value = evaluate(node, self.frame.scope()) if self.frame is not None else None
        return type(value) in (list, tuple) or (isinstance(node, ast.Call) and called_name(node) in _LISTS)

    def _without_pinning(self) -> Fix:
        """Return the fix for a loader whose data are on the device already: `pin_memory=False`."""
        if self.frame is not None:
            for call in calls_in(self.frame.body):
                pinned = keyword(call, "pin_memory")
                if pinned is not None and match_code("True", pinned) is not None:
                    edit = self.frame.code.replaced(pinned, "False")
                    return Fix(sentence("fixed.no-pinning"), (edit,) if edit is not None else ())
        return Fix(sentence("fixed.no-pinning"))


def _converted(code: ast.AST) -> ast.expr | None:
    for call in calls_in(code):
        if match_code("$x.numpy()", call):
            return owner_of(call)
    if isinstance(code, ast.Call) and called_name(code) in ("array", "asarray", "ascontiguousarray") and code.args:
        return None if isinstance(code.args[0], ast.List | ast.Tuple | ast.ListComp) else code.args[0]
    return None
