"""Makes the trace of an error that nobody recorded: a recording that never ran.

It has rows for every tensor that the error's frames lead to, and one op that failed. Modules and moves come from the
hooks, open calls from torch's own `_call_impl` frames. What made the op's inputs is read from the source: those ops are
put into a recorder, inside the module calls that were open.
"""

import ast
import itertools
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from time import perf_counter_ns
from types import FrameType
from typing import Any, Final

import torch

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import Walk
from devtrace.diagnosis.evidence.error_origins import text_of
from devtrace.diagnosis.evidence.torchs_sentences import refused_gradient
from devtrace.explaining import kept_copies
from devtrace.explaining.reading import attributes, calls, expressions, names
from devtrace.explaining.reading.failed_op import UNKNOWN, FailedOp, failed_op
from devtrace.explaining.reading.move_history import AFTER_ALL, BEFORE_ALL
from devtrace.explaining.reading.names import definitions
from devtrace.explaining.reading.reader import Definer, Handler, Reader
from devtrace.explaining.reading.values import ReadOp, TensorValue, Value, tensors_of
from devtrace.explaining.stack import CALLS_OF_MODULES, Level, Stack
from devtrace.explaining.worker_text import read_worker_text
from devtrace.recording.columns import sites
from devtrace.recording.columns.chunk import COUNT_SHIFT, GRAD_SHIFT
from devtrace.recording.columns.operator_info import operator_by_name
from devtrace.recording.columns.process_history import history
from devtrace.recording.columns.recorded_ops import RecordedOps, thread_name
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState
from devtrace.recording.context.module_tree import children, is_module, is_training, own_tensors
from devtrace.recording.context.modules import Modules
from devtrace.recording.context.optimizers import Optimizers
from devtrace.recording.finish.assemble import Assembly, Recorded
from devtrace.recording.finish.observer import observers_of
from devtrace.runtime.quiet import Quiet, is_tensor
from devtrace.runtime.watching import missed
from devtrace.source import kinds, parsing
from devtrace.source.defuse import statements
from devtrace.source.live_objects import Evidence
from devtrace.source.matching import alone, called_name, owner_of
from devtrace.source.object_walk import ReferenceKind, members
from devtrace.source.vocabulary import is_move
from devtrace.words.catalogue import sentence

MOST_VARIABLES: Final = 60
MOST_OBJECTS: Final = 40_000
MOST_ITEMS: Final = 1_000

# Kinds of expressions, each with what reads it: the whole of the language that is understood.
_HANDLERS: Final[Mapping[type[ast.AST], Handler]] = {
    ast.Constant: expressions.read_constant,
    ast.Name: names.read_name,
    ast.Attribute: attributes.read_attribute,
    ast.Subscript: expressions.read_subscript,
    ast.Call: calls.read_call,
    ast.BinOp: expressions.read_operation,
    ast.UnaryOp: expressions.read_operation,
    ast.Compare: expressions.read_operation,
    ast.IfExp: expressions.read_either,
    ast.BoolOp: expressions.read_either,
    ast.NamedExpr: expressions.read_inner,
    ast.Starred: expressions.read_inner,
    ast.Await: expressions.read_inner,
    ast.Tuple: expressions.read_sequence,
    ast.List: expressions.read_sequence,
    ast.Dict: expressions.read_dict,
    ast.ListComp: expressions.read_comprehension,
    ast.GeneratorExp: expressions.read_comprehension,
    ast.SetComp: expressions.read_comprehension,
    ast.FormattedValue: expressions.read_inner,
    ast.JoinedStr: expressions.read_text,
}
_DEFINERS: Final[Mapping[type[ast.AST], Definer]] = {
    ast.Name: names.definitions_of_name,
    ast.Call: calls.definitions_of_call,
}


class Explanation:
    """One error, while its frames are there: `make`, then `forget`."""

    def __init__(self, path: Sequence[BaseException]) -> None:
        self.error = path[-1]
        self.stack = Stack.of(path)
        self.frames = self.stack.sited()
        self.recorder = RecordedOps()
        self.recorder.observers = observers_of(self.recorder, {}, of_errors_alone=True)
        self.recorder.first_tick = next(history.ticks)
        self.modules = Modules(self.recorder)
        self.optimizers = Optimizers(self.recorder)
        self.text = text_of(self.error)
        self.worker = read_worker_text(self.text)
        self.reader = Reader(self.recorder, self.stack, self.text, _HANDLERS, _DEFINERS)

    def forget(self) -> None:
        """Restore stamps on storages, and drop copies of variables in frames."""
        with Quiet():
            self.reader.forget()
        self.stack.forget_locals()

    def make(self, simulated: Callable[[str], bool]) -> Recorded:
        with Quiet():
            variables = [self._variables_of(frame) for _, frame in self.frames]
            walk = Walk(variables, most_objects=MOST_OBJECTS, most_items=MOST_ITEMS)
            self._note_left_out(walk)
            modules, optimizers = walk.of_kind(is_module), walk.of_kind(kinds.is_optimizer)
            roots = self._take_modules(modules)
            self.optimizers.seen.update((id(optimizer), weakref.ref(optimizer)) for optimizer in optimizers)
            kept_copies.add_attached(self.reader, walk)
            kept_copies.add_states(self.reader, optimizers)
            self._read_variables()
            self.reader.steps = 0  # the failed op may take as many steps again
            failed = self._find_failed_op()
            for value in failed.inputs:
                self._confirm_tensors(value)
            self._add_deep_copies(modules, failed.inputs)
            for tensor in walk.tensors:
                self.reader.live(tensor)
            replay = _Replay(self.recorder, self.recorder.follow(thread_name()), self.modules, self.stack)
            site, inputs = replay.run(self.reader.ops, failed.depth), failed.inputs
            if self.worker is not None:
                self.recorder.note(self.worker.note)
                site, inputs = self.worker.site, [*map(self.reader.unknown_tensor, self.reader.devices)]
            self.recorder.note_refusal(replay.state, failed.name, site, [value.row for value in inputs], self.error)
            replay.put_after(self.reader.ops)
            for note in (sentence("explained.not-seen"), *missed()):
                self.recorder.note(note)
            for observer in self.recorder.observers.values():
                observer.end([self.error])
            assembly = Assembly(
                self.recorder,
                self.modules,
                self.optimizers,
                {names[0].text: module for module in roots if (names := walk.names(module))},
                title="",
                simulated=simulated,
                extra_sites=[site for site, _ in self.frames] + ([self.worker.site] if self.worker else []),
            )
            evidence = Evidence(births=frozenset(assembly.rows_of(self.reader.born_before()).tolist()) - {-1})
        return Recorded(assembly.trace, assembly.snapshot(self.frames, None, evidence))

    def _variables_of(self, frame: FrameType) -> dict[str, tuple[Any, ReferenceKind]]:
        """Return the variables of a frame, and those that a comprehension in it had when it failed."""
        variables = access_paths.roots(frame)
        for depth in (index for index, level in enumerate(self.stack.levels) if level.frame is frame):
            turn = self.stack.variables_of_turn(depth, self.reader.trait)
            variables.update((name, (value, "variable")) for name, value in turn.items())
        return variables

    def _find_failed_op(self) -> FailedOp:
        is_readable = self.worker is None and refused_gradient(self.text) is None  # a gradient is in no frame's line
        failed = failed_op(self.reader) if is_readable else None
        return failed or FailedOp(UNKNOWN, [], len(self.stack.levels) - 1)

    def _note_left_out(self, walk: Walk) -> None:
        if len(walk.objects) >= MOST_OBJECTS:
            self.recorder.note(sentence("explained.most-objects", count=MOST_OBJECTS))
        lists = (value for value in walk.objects if type(value) in (list, dict, tuple, deque))
        long = (items for items in lists if len(items) > MOST_ITEMS and any(members(items, MOST_ITEMS)))  # not numbers
        longest = max(map(len, long), default=0)
        if longest:
            self.recorder.note(sentence("explained.most-items", count=MOST_ITEMS, longest=longest))

    def _read_variables(self) -> None:
        """Read the history of the frames' other tensors: it shows moves beside the odd one."""
        for run in self.reader.user_activations():
            scope = run.scope
            if scope is None or scope.locals is scope.globals:
                continue
            for name, value in list(scope.locals.items())[:MOST_VARIABLES]:
                if is_tensor(value):
                    self.reader.live(value, partial(definitions, self.reader, name, run))
            for statement in statements(run.body):  # `x.to(device)` alone leaves a tensor where it is
                move = alone(statement)
                if move and owner_of(move) and is_move(called_name(move)) and run.source.span(move).line <= run.line:
                    self._confirm_tensors(self.reader.see(move, run.at_node(move)))

    def _confirm_tensors(self, value: Value | None) -> None:
        for tensor in tensors_of(value):
            self.reader.pasts.confirm(tensor.row)

    def _add_deep_copies(self, modules: list[Any], inputs: list[TensorValue]) -> None:
        tensors = [value.live for value in inputs if value.live is not None]
        if self.reader.of_dtypes:  # a view made by `a.data` may be gone; the module's tensor is there
            owned = (tensor for module in modules for _, _, tensor in own_tensors(module))
            tensors += itertools.islice(owned, MOST_VARIABLES)
        kept_copies.add_deep_copies(self.reader, tensors, modules)
        for value in inputs:
            value.row = self.reader.renamed.get(value.row, value.row)

    def _take_modules(self, modules: list[Any]) -> list[Any]:
        """Add rows for all modules that variables lead to, whole trees first; return their roots."""
        child_ids = {id(child) for module in modules for _, child in children(module)}
        roots = [module for module in modules if id(module) not in child_ids]
        for module in roots:
            self.modules.take(module, sites.NOWHERE)
        return roots


@dataclass(frozen=True, slots=True)
class _Replay:
    """Puts ops that were read into a recorder, inside the module calls that were open."""

    recorder: RecordedOps
    state: ThreadState
    modules: Modules
    stack: Stack

    def run(self, ops: list[ReadOp], depth: int) -> int:
        """Record the ops, and open the calls down to a level of the stack. Return the site there."""
        ops = [op for op in ops if op.is_seen or op.is_confirmed]
        levels, place = self.stack.levels[: depth + 1], (0, BEFORE_ALL)
        for op in sorted((op for op in ops if op.depth == BEFORE_ALL), key=lambda op: op.tick):
            place = op.depth, op.line = max(place, _place_of_seen_op(op, levels))  # never above an earlier op
        for index, level in enumerate(levels):
            module: Any = level.frame.f_locals.get("self") if level.frame.f_code is CALLS_OF_MODULES[0] else None
            if is_module(module):
                row = self._row_of_module(module)
                self.modules.known[row].ran = True
                self.state.open(row, level.frame.f_back or level.frame, training=is_training(module), plain=False)
            ops_here = _in_order([op for op in ops if op.depth == index])
            for _, group in groupby(ops_here, key=lambda op: id(op.module)):
                self._record_in_call(list(group), level.frame)
        return next((site for site, _ in Stack(levels).sited()), sites.NOWHERE)

    def put_after(self, ops: list[ReadOp]) -> None:
        """Record moves by handlers of the error, such as a trainer that cleans up."""
        for op in sorted((op for op in ops if op.depth == AFTER_ALL), key=lambda op: op.tick):
            self._record_op(op, perf_counter_ns())

    def _record_in_call(self, ops: list[ReadOp], frame: FrameType) -> None:
        module, state, before = ops[0].module, self.state, None
        if module is not None:
            before = state.open(self._row_of_module(module), frame, training=is_training(module), plain=False)
        for op in ops:
            self._record_op(op, self.recorder.origin + (state.op & NUMBERS))
        if before is not None:
            state.close(before)

    def _record_op(self, op: ReadOp, time: int) -> None:
        operator = operator_by_name(op.name)
        operator.kind = op.kind
        head = operator.head | (torch.is_grad_enabled() << GRAD_SHIFT) | len(op.inputs) << COUNT_SHIFT  # packed
        self.state.heads += (head, op.site, time, time + 1, -1, op.row, op.layout)
        self.state.flat += op.inputs
        self.state.op += 1

    def _row_of_module(self, module: Any) -> int:
        if self.modules.row_of(module) < 0:
            self.modules.take(module, sites.NOWHERE)
        return self.modules.row_of(module)


def _place_of_seen_op(op: ReadOp, levels: Sequence[Level]) -> tuple[int, int]:
    """Return the level of the running frame where the hooks saw an op, and the line; else a place before all."""
    position = sites.position(op.site) if op.is_seen and op.site >= 0 else None
    for depth, level in enumerate(levels):
        if position is not None and position.code is level.frame.f_code and position.instruction <= level.instruction:
            return depth, parsing.span_at(position.code, position.instruction).line
    return 0, BEFORE_ALL


def _in_order(ops: list[ReadOp]) -> list[ReadOp]:
    """Sort ops of one frame by line, an op after those of its inputs; those of one line as the hooks saw them."""
    places: dict[int, tuple[int, float]] = {}
    for op in ops:
        places[op.row] = max([(op.line, op.tick), *(places[row] for row in op.inputs if row in places)])
    return sorted(ops, key=lambda op: places[op.row])
