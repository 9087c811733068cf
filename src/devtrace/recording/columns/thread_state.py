"""One thread's ops: flat lists of integers, packed into arrays as they fill.

An op is seven integers in `heads` and the rows of its inputs (and, if it has several, outputs) in `flat`. Appending
to a list is the cheapest thing that Python does (42 ns for seven; an array takes 220); packing them costs 11 ns an
integer and leaves 64 bytes an op.
"""

import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from devtrace.recording.columns import sites
from devtrace.recording.columns.chunk import BACKWARD, NODE_SHIFT, NODES, OPTIMIZER, Chunk
from devtrace.recording.columns.sites import USER, files, known
from devtrace.runtime.torch_names import take
from devtrace.runtime.tracebacks import outward

NO_NUMBER: Final = 1 << 31
"""Autograd's numbers are below; AccumulateGrad, which has none, answers the highest of 64 bits."""
UNKNOWN: Final = -2
NESTED: Final = 8
"""Module calls within each other after which Python may go as much deeper: their recording adds a frame to each."""
THREAD_SHIFT: Final = 40
"""An op is known as (thread << 40 | its number in the thread) until the threads are merged."""
NUMBERS: Final = (1 << THREAD_SHIFT) - 1

# Without one of these autograd's nodes and passes are not known: an op then has no node.
current_node: Final = take("_C._current_autograd_node", "backward", instead=lambda: None)
current_task: Final = take("_C._current_graph_task_id", "backward", instead=lambda: -1)
sequence_number: Final = take("_C._autograd._get_sequence_nr", "backward", instead=lambda: 0)
ENGINE: Final[CodeType] = take("autograd.graph._engine_run_backward", "backward", instead=take).__code__
frames_to_skip: Final[set[CodeType]] = set()
"""Functions of the dispatch mode that only call it again."""


def below_the_mode(frame: FrameType | None) -> FrameType | None:
    """Return the frame that ran an op, given the one below the dispatch mode's own."""
    return frame.f_back if frame is not None and frame.f_code in frames_to_skip else frame


class ModuleCall(NamedTuple):
    """A call of a module: its ops are those of the thread with begin <= number < end."""

    id: int
    module: int
    parent: int
    begin: int
    end: int
    training: int


CALL: Final = len(ModuleCall._fields)


class Lifted(NamedTuple):
    """Tensors that one instruction made of Python's data, in ops one after the other; `end` is the op after them."""

    code: CodeType
    instruction: int
    begin: int
    end: int


class ThreadState:
    """One thread so far: its ops, its open module calls and its current phase."""

    __slots__ = (
        "base", "call", "called", "callers", "chunks", "ended", "fixed", "flat", "heads", "ident", "index", "lifted",
        "mode", "name", "op", "opened", "packed", "parent", "pass_of_base", "phase", "regions", "sequence", "steps",
        "task", "task_site",
    )  # fmt: skip

    def __init__(self, index: int, ident: int, name: str, base: int, parent: int) -> None:
        self.index = index
        self.ident = ident
        self.name = name
        self.pass_of_base = -2  # of a thread of C++: the backward pass whose site `base` is, -1 between passes
        self.base = base  # the site where the thread was started, for ops with no user frame below them
        self.parent = parent  # the module in whose call it was started, -1 for none
        self.heads: list[int] = []
        self.flat: list[int] = []
        self.chunks: list[Chunk] = []
        self.packed = 0  # ops in chunks, with those that were folded away
        self.op = index << THREAD_SHIFT
        self.call = -1
        self.opened: list[tuple[int, int, int, int, bool]] = []  # calls without their end
        self.ended = array("q")  # calls, flat
        self.called = 0
        self.callers: list[int] = []  # for each open call the site of whoever called, UNKNOWN until asked for
        self.fixed = -1  # the site of all ops for now: inside an optimizer's own code
        self.phase = 0
        self.regions = 0  # of torch's profiler that are open
        self.steps: list[tuple[int, int, int]] = []  # optimizers': regions open in each; phase and `fixed` before it
        self.sequence = sequence_number()  # autograd's counter in this thread after the last op
        self.task = -1
        self.task_site = -1
        self.lifted: Lifted | None = None  # what torch made of Python's data last
        self.mode: Any = None  # the dispatch mode that records into this

    def site_of_op(self, frame: Any) -> int:
        """Return the site of an op that a frame runs, in a thread without a `fixed` site."""
        try:
            while not (kind := files[frame.f_code.co_filename]):
                frame = frame.f_back
            if kind == USER:
                return known[id(frame.f_code)][frame.f_lasti]
        except (AttributeError, KeyError):  # no frame, or not yet known
            pass
        return self.find(frame)

    def here(self, frame: FrameType | None) -> int:
        """Return the site of a call that is no op."""
        return self.fixed if self.fixed >= 0 else self.find(frame)

    def find(self, frame: FrameType | None) -> int:
        """Return the site of a frame or of the nearest one around it."""
        return sites.find(frame, self.call_site, self.base)

    def backward_op(self, node: Any, head: int, nodes: dict[type, int]) -> tuple[int, int, int]:
        """Return head, site and sequence of an op of the backward pass; `nodes` has each node class's bits.

        Its site is where backward was called, until its forward op is found. Python code that runs in the pass (a hook,
        a Function's `backward`, the forward pass that checkpoint repeats) has lines of its own.
        """
        bits = nodes.get(type(node))
        if bits is None:
            bits = nodes[type(node)] = BACKWARD | min(len(nodes), NODES - 1) << NODE_SHIFT
        head |= bits
        caller = below_the_mode(sys._getframe(1).f_back)
        if caller is not None and caller.f_code is not ENGINE:
            return head, self.site_of_op(caller), -1
        task = current_task()
        if task != self.task:
            self.task = task
            self.task_site = self.find(caller)
        sequence = node._sequence_nr()
        return head, self.task_site, sequence if sequence < NO_NUMBER else -1

    def site_of_backward(self, frame: FrameType | None) -> int | None:
        """Return the site that called backward, if `frame`, this thread's innermost, is in that call; else None."""
        engine = next((each for each in outward(frame) if each.f_code is ENGINE), None)
        return None if engine is None else self.find(engine)

    def call_site(self, frame: FrameType) -> int:
        """Return the site that called the innermost open module; `frame` is the wrapper of that call."""
        return self._caller(frame, len(self.callers) - 1)

    def _caller(self, frame: FrameType, depth: int) -> int:
        if depth < 0:
            return self.base
        site = self.callers[depth]
        if site == UNKNOWN:
            site = self.callers[depth] = sites.find(frame.f_back, lambda back: self._caller(back, depth - 1), self.base)
        return site

    @property
    def module(self) -> int:
        """Row of the module whose call this thread is in, -1 for none."""
        return self.opened[-1][1] if self.opened else -1

    def open(self, module_row: int, caller: FrameType | None, *, training: bool, plain: bool) -> tuple[int, int, int]:
        """Begin a module's call; return what `close` needs. All ops of a plain one are at the line that called it."""
        outer_state = self.call, self.fixed, self.phase
        if not plain:
            self.fixed = -1
        elif self.fixed < 0:
            self.fixed = self.site_of_op(caller)
        self.call = self.called
        self.called += 1
        self.opened.append((self.call, module_row, outer_state[0], self.op & NUMBERS, training))
        self.callers.append(self.fixed if self.fixed >= 0 else UNKNOWN)
        if not len(self.callers) % NESTED:
            sys.setrecursionlimit(sys.getrecursionlimit() + NESTED)
        self.phase = 0
        return outer_state

    def close(self, outer_state: tuple[int, int, int]) -> None:
        id, module, parent, begin, training = self.opened.pop()
        self.ended.fromlist([id, module, parent, begin, self.op & NUMBERS, training])
        self.call, self.fixed, self.phase = outer_state
        if not len(self.callers) % NESTED:
            with suppress(RecursionError):
                sys.setrecursionlimit(sys.getrecursionlimit() - NESTED)
        self.callers.pop()

    def region(self, change: int) -> None:
        """Count torch's profiler regions; one that ends also ends an optimizer's step that was cut short in it."""
        self.regions += change
        while self.steps and self.steps[-1][0] > self.regions:
            self.end_step()

    def begin_step(self) -> None:
        """Begin an optimizer's step, which torch runs in a profiler region of its own."""
        self.steps.append((self.regions, self.phase, self.fixed))
        self.phase = OPTIMIZER

    def end_step(self) -> None:
        if self.steps:
            _, self.phase, self.fixed = self.steps.pop()

    def calls(self) -> list[ModuleCall]:
        """Return all calls so far, in the order in which they began; one that is still open ends at the next op."""
        end = self.op & NUMBERS
        return sorted([*self.ended_calls(), *(ModuleCall(*call[:4], end, call[4]) for call in self.opened)])

    def ended_calls(self) -> Iterator[ModuleCall]:
        for at in range(0, len(self.ended), CALL):
            yield ModuleCall(*self.ended[at : at + CALL])

    def reopen(self, module_row: int, parent: int) -> int:
        """Extend the call of a module that has just ended by the next op; return its id, else `parent`."""
        for at in reversed(range(0, len(self.ended), CALL)):
            call = ModuleCall(*self.ended[at : at + CALL])
            if (call.module, call.parent, call.end) == (module_row, parent, self.op & NUMBERS):
                self.ended[at + ModuleCall._fields.index("end")] += 1
                return call.id
        return parent

    def expect_lift(self, frame: FrameType | None) -> None:
        """Note that the next op makes a tensor of Python's data, in the instruction that a frame runs."""
        if frame is not None:
            last, instruction = self.lifted, (frame.f_code, frame.f_lasti)
            continues = last is not None and last[:2] == instruction and last.end == self.op
            begin = last.begin if last is not None and continues else self.op
            self.lifted = Lifted(*instruction, begin, self.op + 1)

    def lifted_in(self, frame: FrameType | None) -> range:
        """Return the latest ops that made tensors of Python's data, if the instruction that a frame runs made them."""
        lifted = self.lifted
        if lifted is None or frame is None or lifted[:2] != (frame.f_code, frame.f_lasti) or lifted.end != self.op:
            return range(0)
        return range(lifted.begin, lifted.end)

    def pack(self) -> None:
        """Turn the full lists into arrays. They are replaced last: a fault in between loses none of them."""
        if self.heads:
            chunk = Chunk.of(self.heads, self.flat, self.packed)
            packed = self.packed + len(chunk)
            self.chunks, self.packed, self.heads, self.flat = [*self.chunks, chunk], packed, [], []

    def kept_count(self) -> int:
        return sum(map(len, self.chunks))
