"""The reader: gives an expression its value, and notes the ops that the source says made it.

Bounded in steps and in depth. A live tensor is itself. What made it is sought only where the hooks do not know.
An expression that gives another device than the tensor has is not taken for its origin.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

import torch

from devtrace.diagnosis.evidence.error_origins import dtypes_named
from devtrace.explaining.reading import element_types as dtypes_of
from devtrace.explaining.reading.file_index import site_of
from devtrace.explaining.reading.move_history import BEFORE_ALL, Pasts
from devtrace.explaining.reading.values import (
    Activation,
    Definition,
    KnownValue,
    ReadOp,
    Several,
    TensorValue,
    Value,
    item_of,
    run_at,
    tensors_of,
)
from devtrace.explaining.stack import Stack
from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.operator_info import COMPUTE
from devtrace.recording.columns.process_history import Stamp
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.tensor_rows import key_of
from devtrace.runtime.quiet import device_of, dtype_of, is_tensor, shape_of
from devtrace.runtime.requirements import sentence_of_fault
from devtrace.runtime.watching import Faults
from devtrace.source import parsing
from devtrace.source.defuse import Position
from devtrace.source.kinds import device_named_by
from devtrace.source.matching import keyword, variable
from devtrace.source.safe_values import MISSING
from devtrace.source.vocabulary import devices_named, hands_on, in_full

MOST_LEVELS: Final = 8
MOST_STEPS: Final = 4_000
MOST_ITEMS: Final = 32
MOST_DEFINITIONS: Final = 24
MOST_ALIASES: Final = 8
SOUGHT_TENSOR: Final = -1
"""Row of a tensor whose birth is being sought, where that leads back to it."""
_MADE: Final = (ast.Call, ast.BinOp, ast.UnaryOp, ast.ListComp, ast.Compare)

Handler = Callable[["Reader", Any, Activation], Value | None]
Definer = Callable[["Reader", Any, Activation], Iterable[Definition]]
Definitions = Callable[[], Iterable[Definition]]


class Reader:
    """Reads expressions of one error's frames. `devices` are those that the error names in its `text`."""

    def __init__(
        self,
        recorder: RecordedOps,
        stack: Stack,
        text: str,
        handlers: Mapping[type[ast.AST], Handler],
        definers: Mapping[type[ast.AST], Definer],
    ) -> None:
        self.recorder = recorder
        self.rows = recorder.rows
        self.stack = stack
        self.devices = devices_named(text)
        self.default_device = in_full(str(torch.get_default_device()))
        dtypes = dtypes_named(text)
        self.of_dtypes = dtypes is not None
        self.trait = dtype_of if self.of_dtypes else device_of
        self.dtypes = [getattr(torch, each) for each in dtypes or () if hasattr(torch, each)]
        self.ops: list[ReadOp] = []
        self.pasts = Pasts(recorder.rows, self.ops, stack.errors)
        self.renamed: dict[int | None, int] = {}
        self.steps = 0
        self._lines: dict[int, int] = {}  # of live frames, that of what is read there
        self._handlers = handlers
        self._definers = definers
        self._busy: set[tuple[int, int]] = set()
        self._faults: Final = Faults(lambda fault: recorder.note(sentence_of_fault("explained.not-read", fault)))
        self.cache: dict[tuple[int, Position], tuple[Activation, Value | None]] = {}
        self._sites: dict[int, int] = {}  # of tensors whose birth is being sought: of the expression that made one
        self._sought: Counter[int] = Counter()  # tensors whose birth is being sought, by how many names
        self._activations: dict[int, Activation | None] = {}
        self._stamps_before: list[tuple[Any, Stamp]] = []

    # Frames.

    def activation(self, depth: int) -> Activation | None:
        """Return the live frame at a level of the stack; None without source."""
        if depth not in self._activations:
            self._activations[depth] = run_at(self.stack, depth, self.trait)
        return self._activations[depth]

    def node(self, depth: int) -> ast.AST:
        """Return the expression that a level runs."""
        level = self.stack.levels[depth]
        return parsing.node_of(level.frame.f_code, level.instruction)[1]

    def user_activations(self) -> Iterator[Activation]:
        """Yield the live frames of the user's own code, innermost first."""
        return (run for run in self.live_activations() if sites.files[run.source.file] == sites.USER)

    def live_activations(self) -> Iterator[Activation]:
        """Yield the live frames of the user's and of packages' code, innermost first."""
        readable = (depth for depth, level in enumerate(self.stack.levels) if level.is_readable)
        return filter(None, map(self.activation, reversed([*readable])))

    def files(self) -> list[Activation]:
        """Return the user's files among the frames, each once as a run that read it to its end."""
        runs: dict[str, Activation] = {}
        for run in self.user_activations():
            runs.setdefault(run.source.file, Activation.of_file(run.source, run.globals))
        return list(runs.values())

    # Values.

    def see(self, node: ast.AST | None, activation: Activation) -> Value | None:
        """Return the value of an expression; None where it cannot be read."""
        self.steps += 1
        handler = self._handlers.get(type(node)) if node is not None else None
        if node is None or handler is None or self.steps > MOST_STEPS or activation.level > MOST_LEVELS:
            return None
        key = id(node), activation.level
        if key in self._busy:  # it leads back to itself
            return None
        self._busy.add(key)
        line = self._lines.get(activation.depth, 0)
        if activation.scope is not None:
            self._lines[activation.depth] = activation.source.span(node).line
        try:
            return handler(self, node, activation)
        finally:
            self._busy.discard(key)
            self._lines[activation.depth] = line

    def known(self, node: ast.AST | None, activation: Activation) -> Any:
        """Return the live object or constant that an expression gives; MISSING for any other value."""
        value = self.see(node, activation)
        return value.value if isinstance(value, KnownValue) else MISSING

    def read(self, origin: Definition) -> Value | None:
        """Return the value that a definition gave."""
        return self.part(self.see(origin.node, origin.activation), origin.position, origin.node, origin.activation)

    def first(self, definitions: Iterable[Definition]) -> Value | None:
        """Return the first value among those of definitions that can be read."""
        return next((value for definition in definitions if (value := self.read(definition)) is not None), None)

    def definitions(self, node: ast.AST, activation: Activation) -> list[Definition]:
        """Return the expressions that gave a variable, an attribute or an item its value, the likeliest first."""
        definer, key = self._definers.get(type(node)), (id(node), -2)
        if key in self._busy or activation.level > MOST_LEVELS:
            return []
        self._busy.add(key)
        try:
            if definer is not None:
                return list(definer(self, node, activation))
            value = self.see(node, activation)
            return list(value.definitions()) if isinstance(value, KnownValue) else []
        finally:
            self._busy.discard(key)

    def tensors(self, nodes: Iterable[ast.expr | None], activation: Activation) -> list[TensorValue]:
        """Return the tensors among the values of expressions, those in live lists too."""
        return [value for node in nodes if node for value in self.members(self.see(node, activation), node, activation)]

    def members(
        self, value: Value | None, node: ast.expr | None = None, activation: Activation | None = None
    ) -> list[TensorValue]:
        """Return the tensors of a value. Those of a live list are read as items of its code `node`, if given."""
        is_tuple = isinstance(value, KnownValue) and issubclass(type(value.value), tuple)  # a named one, too
        if not isinstance(value, KnownValue) or not (is_tuple or type(value.value) in (list, dict)):
            return list(tensors_of(value))
        whole, find = value.value, partial(_of_item, value)
        parts = enumerate(tuple.__iter__(whole) if is_tuple else whole)
        items = islice(whole.items() if type(whole) is dict else parts, MOST_ITEMS)
        tensors = {index: item for index, item in items if is_tensor(item)}
        if node is not None and activation is not None:
            for index in tensors:
                self.see(item_of(node, index), activation)
        return [self.live(tensor, partial(find, (index,))) for index, tensor in tensors.items()]

    def value(self, value: Any, definitions: Definitions = tuple) -> Value:
        """Return a live object as a value."""
        return self.live(value, definitions) if is_tensor(value) else KnownValue(value, definitions)

    def live(self, tensor: Any, definitions: Definitions = tuple) -> TensorValue:
        """Return a live tensor, with the ops that made it where the source shows them."""
        device, dims, key = str(device_of(tensor)), len(shape_of(tensor)), id(tensor)
        nested = self._sought[key]
        if not self.is_known(tensor) and nested < MOST_ALIASES:
            self._sought[key] += 1
            former, self.cache = self.cache, {}  # what made one tensor did not make another: `for _ in range(2)`
            try:
                with self._faults:
                    self._find_birth(tensor, device, definitions, is_outermost=not nested)
            finally:
                self._sought[key], self.cache = self._sought[key] - 1, former
        if nested and not self.is_known(tensor):
            other_dtypes = [dtype for dtype in self.dtypes if dtype != dtype_of(tensor)]
            was_taken = nested > MOST_ALIASES and len(other_dtypes) == 1  # in a round that did not fail
            return TensorValue(SOUGHT_TENSOR, device, dims, dtype=other_dtypes[0] if was_taken else dtype_of(tensor))
        return TensorValue(self.row(tensor), device, dims, live=tensor, dtype=dtype_of(tensor))

    def row(self, tensor: Any) -> int:
        """Return the row of a live tensor; for one that the hooks saw moving, add ops for its moves first."""
        epoch, _, birth, past = self._keep_stamp(tensor)
        if epoch == self.rows.epoch or past is None:  # has a row in this trace, or was never seen moving
            return self.rows.row_for_input(tensor)
        row = self.pasts.row_after_moves((birth, device_of(tensor), dtype_of(tensor), past), shape_of(tensor))
        self.stamp(tensor, row)
        return row

    def is_known(self, tensor: Any) -> bool:
        """Return whether a tensor has a row, or the hooks saw its birth; for a view its own row counts."""
        epoch, views, birth, past = stamps.get(tensor)
        return key_of(tensor) in views if epoch == self.rows.epoch else birth >= 0 or past is not None

    def _find_birth(self, tensor: Any, device: str, definitions: Definitions, *, is_outermost: bool) -> None:
        """Find the op that made a tensor, and give the tensor its row; else note only the expression that made it."""
        site = self._sites.pop(id(tensor), sites.NOWHERE)
        others: list[TensorValue] = []
        dtype = dtype_of(tensor) if self.of_dtypes else None
        for origin in islice(definitions(), MOST_DEFINITIONS):
            if origin.is_of_repetition and site >= 0:  # a likelier expression is known
                break
            sought = self._sought[id(tensor)]
            takes_former = origin.takes_former or origin.is_of_repetition
            self._sought[id(tensor)] = MOST_ALIASES + origin.is_of_repetition if takes_former else sought
            value = self.read(origin)
            made = value if isinstance(value, TensorValue) and value.row != SOUGHT_TENSOR else None
            self._sought[id(tensor)] = sought
            site = self._sites.pop(id(tensor), site)  # a nested search may have noted it
            is_other = made is not None and dtypes_of.differs(made, device, dtype)
            is_made = isinstance(origin.node, _MADE) and not (value is None and hands_on(origin.node, self.of_dtypes))
            if site < 0 and (origin.is_source or is_made) and not (origin.is_one_of_many or is_other):
                site = self.site(origin.node, origin.activation)
            if self.is_known(tensor):
                return
            if made is not None:
                if is_other:
                    others += [] if takes_former and self.of_dtypes else [made]
                elif made.op is not None:
                    self.born_by(tensor, made.op)
                    return
                else:
                    self._copy_birth(tensor, made)
                    break
        stale = next((other for other in others if other.op and self.pasts.put_before_move(other, device, dtype)), None)
        maker = stale or next((other for other in others if self.of_dtypes and dtypes_of.may_be(other, device)), None)
        if maker is not None and maker.op is not None:
            self.born_by(tensor, maker.op)
        elif site >= 0 and not is_outermost:
            self._sites[id(tensor)] = site
        elif site >= 0:
            self.stamp(tensor, self.rows.add(self.rows.layout(tensor)[2], -1, -1, site))

    def _copy_birth(self, tensor: Any, other: TensorValue) -> None:
        """Note that a tensor was made in an earlier step of a loop, by the op that made its successor."""
        op = self.pasts.by_row.get(other.row)
        if op is not None and not op.is_seen:
            earlier = replace(op, row=next(self.rows.next))
            self.pasts.add_read(earlier, [])
            self.born_by(tensor, earlier)

    def born_by(self, tensor: Any, op: ReadOp) -> None:
        """Let a live tensor be the result of an op."""
        op.layout = self.rows.layout(tensor)[2]
        self.pasts.settle(op, dtype_of(tensor), self.dtypes)
        kept_at = stamps.kept_at(tensor) if stamps.get(tensor)[0] != self.rows.epoch else None  # a view is younger
        if kept_at is not None and op.owner is not None and op.depth != BEFORE_ALL:
            self.pasts.put_in_earlier_call(op, kept_at)  # the move found it among the module's attributes
        self.stamp(tensor, op.row)
        self.pasts.confirm(op.row)

    def stamp(self, tensor: Any, row: int) -> None:
        """Give a tensor a row while the trace is made, by a stamp without a birth; a further view needs an op."""
        epoch, views, _, _ = self._keep_stamp(tensor)
        others = views if epoch == self.rows.epoch else {}
        if not others or row in self.pasts.by_row:
            stamps.put(tensor, (self.rows.epoch, {**others, key_of(tensor): row}, -1, None))

    def rename(self, old: int | None, new: int) -> None:
        """Replace a row in the inputs of all ops so far."""
        for op in self.ops:
            op.inputs = [new if row == old else row for row in op.inputs]
        self.renamed[old] = new

    def _keep_stamp(self, tensor: Any) -> Stamp:
        stamp = stamps.get(tensor)
        if stamp[0] != self.rows.epoch:  # `forget` puts it back
            self._stamps_before.append((tensor, stamp))
        return stamp

    def unknown_tensor(self, device: str) -> TensorValue:
        """Return a tensor of which nothing but its device is known."""
        return TensorValue(self.rows.add(self.layout(device, 1), -1, -1, sites.NOWHERE), device)

    def born_before(self) -> list[Any]:
        """Return the tensors whose births the hooks saw, or a recording."""
        return [tensor for tensor, (_, _, birth, _) in self._stamps_before if birth >= 0]

    def forget(self) -> None:
        """Restore the stamps of all tensors, and release the frames' variables."""
        while self._stamps_before:
            stamps.put(*self._stamps_before.pop())
        self._activations.clear()
        self.ops.clear()

    def part(self, value: Value | None, position: Position, node: ast.AST, activation: Activation) -> Value | None:
        """Return the part of a value for a position in a tuple target."""
        for index in position:
            if isinstance(value, Several):
                value = value.item(index)
            elif isinstance(value, TensorValue) and value.row != SOUGHT_TENSOR:
                value = self.derived("aten.select", COMPUTE, node, activation, [value])
            elif isinstance(value, KnownValue) and issubclass(type(value.value), (list, tuple)):
                kind: Any = list if issubclass(type(value.value), list) else tuple  # a subclass's methods would run
                if type(index) is not int or not -kind.__len__(value.value) <= index < kind.__len__(value.value):
                    return None
                value = self.value(kind.__getitem__(value.value, index), partial(_of_item, value, (index,)))
            else:
                return None
        return value

    # Ops.

    def site(self, node: ast.AST, activation: Activation) -> int:
        """Return the site of an expression; of torch's code the user's line that called it."""
        return site_of(node, activation.source, activation.caller) if activation.is_readable else activation.caller

    def emit(
        self,
        name: str,
        kind: int,
        node: ast.AST,
        activation: Activation,
        inputs: list[TensorValue],
        device: str,
        dims: int = 1,
        dtype: torch.dtype | None = None,
    ) -> TensorValue:
        """Note an op; return its result, with its device and, for dtype errors, its dtype if known."""
        dtype = dtype if self.of_dtypes else None
        row, layout = next(self.rows.next), self.layout(device, dims, dtype)
        rows, site, depth = [value.row for value in inputs], self.site(node, activation), activation.depth
        op = ReadOp(name, kind, site, rows, row, layout, depth, activation.module, activation.owner)
        op.is_open = self.of_dtypes and dtype is None
        op.line = self._lines.get(depth, 0)
        self.pasts.add_read(op, inputs)
        return TensorValue(row, device, dims, op, dtype=dtype)

    def named_device(self, value: Value | None) -> str:
        """Return the device that a value names, or that a tensor is on; empty for none."""
        if isinstance(value, TensorValue):
            return value.device
        if isinstance(value, KnownValue) and type(value.value) is int:
            kinds = (device.partition(":")[0] for device in self.devices if device not in ("cpu", "meta"))
            return f"{next(kinds, 'cuda')}:{value.value}"
        return in_full(device_named_by(value.value)) if isinstance(value, KnownValue) else ""

    def layout(self, device: str, dims: int, dtype: torch.dtype | None = None) -> int:
        return self.rows.layout_of((0,) * min(dims, 1), dtype or torch.float32, torch._C.device(device))[2]

    def derived(
        self, name: str, kind: int, node: ast.AST, activation: Activation, inputs: list[TensorValue]
    ) -> TensorValue:
        """Note an op whose result is where its inputs are: on the accelerator if one is there; numbers do not count."""
        large = [value for value in inputs if value.dims > 0] or inputs
        first = next((value for value in large if value.device != "cpu"), large[0])
        dtype = self.asked_dtype(node, activation) or dtypes_of.of_result(name, inputs, node, activation.source)
        return self.emit(name, kind, node, activation, inputs, first.device, max(value.dims for value in inputs), dtype)

    def asked_dtype(self, node: ast.AST, activation: Activation) -> torch.dtype | None:
        """Return the `dtype=` of a call."""
        argument = keyword(node, "dtype") if self.of_dtypes and isinstance(node, ast.Call) else None
        return dtypes_of.dtype_given_by(self.see(argument, activation)) or dtypes_of.OF_PYTHON.get(variable(argument))


def _of_item(whole: KnownValue, position: Position) -> Iterator[Definition]:
    """Yield the definitions of a container, each with the position of the item in it."""
    return (origin._replace(position=(*origin.position, *position)) for origin in whole.definitions())
