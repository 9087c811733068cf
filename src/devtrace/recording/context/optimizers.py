"""Finds an optimizer's ops by the global hooks around every `step`, and notes where its state was made.

torch does not call the hook after a step that raises. But it runs every step in a region of its profiler. The end of a
region is an op, which the mode sees after an error too (`ThreadState.region`).
State that a step left when it raised is found at the next look, by the line of that step.
"""

import sys
import weakref
from functools import partial
from itertools import takewhile
from threading import get_ident
from types import CodeType, FrameType, FunctionType
from typing import Any

from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.process_history import States, history
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.thread_state import ThreadState
from devtrace.recording.context.happenings import follow
from devtrace.runtime.patches import Patches
from devtrace.runtime.quiet import Quiet
from devtrace.runtime.tracebacks import outward
from devtrace.runtime.watching import STATES
from devtrace.source.object_walk import states_of
from devtrace.source.safe_values import class_dict, classes_of, full_name_of


class Optimizers:
    """Marks the thread that is in a `step`, and remembers the optimizers: their state gets names at the end."""

    def __init__(self, recorder: RecordedOps) -> None:
        self.recorder = recorder
        self.seen: dict[int, weakref.ref[Any]] = {}

    def install(self) -> list[RemovableHandle]:
        return [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        sampler = self.recorder.sampler_here()
        if sampler is not None and has_closure(args, kwargs):
            sampler.change()  # it calls modules within the step
        if sampler is not None and sampler.step(optimizer):
            return
        if (state := self.recorder.states.get(get_ident())) is None:
            return
        with self.recorder.faults:
            self._begin(optimizer, args, kwargs, state, sys._getframe(1))

    def _begin(self, optimizer: Any, args: Any, kwargs: Any, state: ThreadState, frame: FrameType) -> None:
        self.seen[id(optimizer)] = weakref.ref(optimizer)
        state.begin_step()
        # Without a closure torch's own optimizers run none of the user's code: all ops are at the line of `step`.
        if not has_closure(args, kwargs) and full_name_of(type(optimizer))[0].startswith("torch.optim"):
            state.fixed = state.find(frame)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state = self.recorder.states.get(get_ident())
        if state is not None:
            state.end_step()


def has_closure(args: Any, kwargs: Any) -> bool:
    """Return whether a step got a closure: those who wrap an optimizer pass None."""
    return (len(args) > 1 or bool(kwargs)) and any(callable(each) for each in (*args[1:], *kwargs.values()))


# Births of state: in a constructor, a step, or `load_state_dict`.

_NOWHERE = -1
_dictionary: Any = Optimizer.__dict__["__dict__"].__get__
"""Reads an optimizer's own attributes, whatever its class makes of `__dict__`."""


def hook() -> list[RemovableHandle]:
    return [register_optimizer_step_pre_hook(_begin_step), register_optimizer_step_post_hook(_end_step)]


def install(patches: Patches) -> None:
    patches.wrap(Optimizer, "__init__", partial(follow, STATES, _note_constructor))
    patches.wrap(Optimizer, "load_state_dict", partial(follow, STATES, _note_loaded))


def _note_constructor(optimizer: Optimizer, _: None, caller: FrameType) -> None:
    codes = _constructors(type(optimizer))
    if any("state" in code.co_names for code in codes):  # an `__init__` of the user's is no line of a birth
        _store(optimizer, 0, sites.find(next((frame for frame in outward(caller) if frame.f_code not in codes), None)))


def _constructors(kind: type) -> list[CodeType]:
    """Return the code of the constructors of a class and those above it, up to torch's."""
    functions = (
        class_dict(each).get("__init__") for each in takewhile(lambda each: each is not Optimizer, classes_of(kind))
    )
    return [each.__code__ for each in functions if type(each) is FunctionType]


def _begin_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """A step begins: state without a birth is of the constructor, or of a step that raised.

    State that a user filled in stays without one.
    """
    if is_compiling():
        return
    try:
        states, size = _history_of(optimizer), len(_state_of(optimizer))
        if states is None or states.known != size:
            if states is not None and states.site >= 0:
                _note_births(optimizer, states.site)
            _store(optimizer, size, sites.find(sys._getframe(2)))
        elif size == 0:
            states.site = sites.find(sys._getframe(2))
    except Exception as fault:  # noqa: BLE001 (a `with` in each step costs more)
        STATES.miss(fault)


def _end_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """A step made new state (an optimizer's first step, or one with new parameters): it was born in this step."""
    if is_compiling():
        return
    try:
        states, size = _history_of(optimizer), len(_state_of(optimizer))
        if states is not None and states.known == size == 0:
            states.site = _NOWHERE
        elif states is None or states.known != size or states.site >= 0:
            _note_births(optimizer, sites.find(sys._getframe(2)))
    except Exception as fault:  # noqa: BLE001
        STATES.miss(fault)


def _history_of(optimizer: Optimizer) -> States | None:
    states = history.stateful.get(id(optimizer))
    return states if states is not None and states.optimizer() is optimizer else None


def _state_of(optimizer: Optimizer) -> dict[Any, Any]:
    """Return an optimizer's state as it is stored; empty where the class has a property of the user's for it."""
    own: Any = _dictionary(optimizer)
    states = own.get("state") if type(own) is dict else None
    return states if issubclass(type(states), dict) else {}  # type: ignore[return-value]


def _note_loaded(optimizer: Optimizer, _: None, caller: FrameType) -> None:
    _note_births(optimizer, sites.find(caller))


def _note_births(optimizer: Optimizer, site: int) -> None:
    """Let an optimizer's state that has no birth yet be born at a site."""
    birth = stamps.birth(site)
    with Quiet():
        for _, _, value in states_of(optimizer):
            stamps.put_birth(value, birth)
    _store(optimizer, len(_state_of(optimizer)), _NOWHERE)


def _store(optimizer: Optimizer, known: int, site: int) -> None:
    key, table = id(optimizer), history.stateful  # by a closure: a module's globals end before a process does
    states = _history_of(optimizer)
    reference = states.optimizer if states else weakref.ref(optimizer, lambda _: table.pop(key, None))
    table[key] = States(reference, known, site)
