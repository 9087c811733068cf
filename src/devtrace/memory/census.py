"""One walk over all that is alive: which variable, model, optimizer, graph or traceback holds each storage.

Nothing is watched while the program runs, and nothing is kept by looking. A storage has one holder, the first that
leads to it: models and optimizers, then what keeps without being asked (results of cells, containers, tracebacks),
then variables, then graphs of variables. The graph is read by `_raw_saved_*.data`, which runs no hook of the user's
and allocates nothing.
"""

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache
from itertools import groupby
from operator import attrgetter
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, NamedTuple, TypeVar

import torch

from devtrace.memory.shortage import NOBODY, Holding
from devtrace.memory.traversal import in_containers, inside, may_enter
from devtrace.recording.columns import sites, stamps
from devtrace.runtime.interrupts import no_collecting
from devtrace.runtime.observers import Alive
from devtrace.runtime.quiet import Quiet, device_of, gradient_of, is_leaf, is_tensor, own_storage, tensors_alive
from devtrace.runtime.tracebacks import entries_of
from devtrace.source.live_objects import forget_locals
from devtrace.source.object_walk import may_lead, parameters_of, registered, states_of
from devtrace.source.safe_values import instance_dict
from devtrace.trace.ids import SiteId, TensorId

MOST_OBJECTS: Final = 200_000
MOST_NODES: Final = 1_000_000
WORTH: Final = 0.01
"""Of all memory: less that no name leads to is not named."""
HISTORY: Final = ("Out", "_oh", "_", "__", "___")
_Base: Final[Any] = torch._C.TensorBase
_node_of: Final = _Base.grad_fn.__get__


T = TypeVar("T")
Steps = Generator[None, None, T]


class Root(NamedTuple):
    """A variable, and whose it is."""

    name: str
    value: Any
    scope: tuple[str, str, int]


Visit = Callable[[Any, str, int], Steps[None]]
"""Looks at an object, by its path and by how many steps more than a variable's own name, in small steps."""


class Census:
    """A walk over one device's storages."""

    def __init__(self, alive: Alive, epochs: set[int]) -> None:
        self.epochs = epochs
        self.device = alive.device
        self.bytes = {id(each[0]): each for each in alive.storages}
        self.is_complete = 0 < alive.allocated <= sum(size for _, size in self.bytes.values())
        self.found: dict[int, Holding] = {}
        self.nodes: set[Any] = set()
        self.running: set[FrameType] = set()
        self.errors: set[int] = set()
        self.optimizers: list[Root] = []
        self.scope: tuple[str, str, int] = NOBODY

    def claim(self, tensor: Any, kind: str, name: str, contained: int = 1) -> None:
        """Note a tensor's holder, unless it has one."""
        storage = own_storage(tensor)
        key = id(storage)
        if storage is None or key in self.found:
            return
        if key not in self.bytes:
            if self.is_complete or device_of(tensor) != self.device:
                return
            self.bytes[key] = (storage, storage.nbytes())
        self.found[key] = self._owned(storage, kind, name, contained)

    def _owned(self, storage: Any, kind: str, name: str, contained: int) -> Holding:
        stamp = getattr(storage, stamps.NAME, stamps.UNSTAMPED)
        row = next(iter(stamp[1].values()), -1) if stamp[0] in self.epochs else -1
        size = self.bytes[id(storage)][1]
        return Holding(kind, name, size, SiteId(stamp[2]), TensorId(row), self.scope, contained)

    def graph(self, tensor: Any, kind: str, name: str, contained: int = 1) -> Steps[None]:
        """Claim what autograd keeps for the backward pass of a tensor."""
        first = _node_of(tensor)
        stack = [first] if first is not None and first not in self.nodes else []
        self.nodes.update(stack)
        while stack and len(self.nodes) < MOST_NODES:
            node = stack.pop()
            for saved in _saved(node):
                self.claim(saved, kind, name, contained)
            for below, _ in node.next_functions:
                if below is not None and below not in self.nodes:
                    self.nodes.add(below)
                    stack.append(below)
            yield

    def walk(self, roots: Iterable[Root], visit: Visit, leads: Callable[[Any], bool] = may_enter) -> Steps[None]:
        """Visit what variables lead to, each object once.

        All variables of a frame come before what they lead to: `losses` is no part of a function that closes over it.
        What a function closed over is a variable of that function.
        """
        seen: set[int] = set()
        for scope, variables in groupby(roots, key=attrgetter("scope")):
            queue = deque((root.value, root.name, 0, scope) for root in variables)
            while queue and len(seen) < MOST_OBJECTS:
                value, path, contained, self.scope = queue.popleft()
                yield from visit(value, path, contained)
                if not is_tensor(value) and not issubclass(type(value), BaseException) and leads(value):
                    whose = _scope(value.__code__) if type(value) is FunctionType else None
                    for text, inner in inside(value):
                        if id(inner) not in seen or is_tensor(inner):
                            seen.add(id(inner))
                            depth = (contained or 1) + (text == "")
                            step = (path + text, depth, self.scope) if whose is None else (text, 0, whose)
                            queue.append((inner, *step))
                yield

    def part(self, value: Any, path: str, contained: int) -> Steps[None]:
        """Claim the parts of a model; an optimizer's come after those of all models."""
        own = instance_dict(value)
        if "param_groups" in own and "state" in own:
            self.optimizers.append(Root(path, value, self.scope))
        elif "_parameters" in own and "_modules" in own:  # of one within another all is claimed already
            for _, tensor in registered(value):
                self.parameter(tensor, path)
                yield

    def parameter(self, tensor: Any, path: str) -> None:
        kind = "parameter" if issubclass(type(tensor), torch.nn.Parameter) else "buffer"
        self.claim(tensor, kind, path)
        self.gradient(tensor, path)

    def gradient(self, tensor: Any, path: str) -> None:
        gradient = gradient_of(tensor) if is_leaf(tensor) else None
        if gradient is not None:
            self.claim(gradient, "gradient", path)

    def parts_of_optimizers(self) -> Steps[None]:
        """Claim the state of optimizers, and the parameters whose model is gone."""
        for root in self.optimizers:
            self.scope = root.scope
            for _, _, tensor in states_of(root.value):
                self.claim(tensor, "optimizer-state", root.name)
                yield
            for tensor in parameters_of(root.value):
                self.parameter(tensor, root.name)

    def kept(self, value: Any, path: str, contained: int) -> Steps[None]:
        """Claim the tensors that containers, attributes and tracebacks hold, and the graphs that hang on these."""
        if is_tensor(value) and contained:
            self.gradient(value, path)
            yield from self.with_graph(value, "named", "graph", path, contained)
        elif issubclass(type(value), BaseException):
            yield from self.error(value, path)

    def with_graph(self, value: Any, kind: str, graph: str, path: str, contained: int = 1) -> Steps[None]:
        if is_tensor(value):
            self.claim(value, kind, path, contained)
            yield from self.graph(value, graph, path, contained)

    def error(self, error: BaseException | None, name: str) -> Steps[None]:
        """Claim what the frames of an exception keep that have ended."""
        while error is not None and id(error) not in self.errors:
            self.errors.add(id(error))
            for frame in (entry.tb_frame for entry in entries_of(error)):
                # One that runs keeps its own, as a module, or a notebook, does.
                if frame in self.running or frame.f_locals is frame.f_globals:
                    continue
                local = [Root(name, value, self.scope) for value in list(frame.f_locals.values()) if may_lead(value)]
                yield from self.walk(local, lambda value, *_: self.with_graph(value, "traceback", "traceback", name))
                forget_locals(frame)
            error = error.__cause__ or error.__context__

    def asked(self, own: list[Root], notebook: list[Root], torchs: list[Root]) -> Steps[None]:
        """Ask the user's variables, the notebook's history and what torch works on, in steps of an object each.

        In history, and in what torch's own code works on (the `input` of a Sequential), only containers are entered.
        """
        yield from self.walk(own, self.part)
        yield from self.parts_of_optimizers()
        yield from self.walk(notebook, lambda value, *_: self.with_graph(value, "history", "history", "Out"), _is_plain)
        yield from self.walk(own, self.kept)
        for name in ("last_exc", "last_value"):
            error = getattr(sys, name, None)
            if isinstance(error, BaseException):
                yield from self.error(error, f"sys.{name}")
        tensors = [root for root in own if is_tensor(root.value)]
        for root in tensors:
            self.scope = root.scope
            self.claim(root.value, "named", root.name, contained=0)
            self.gradient(root.value, root.name)
            yield
        for root in tensors:
            self.scope = root.scope
            yield from self.graph(root.value, "activation", root.name, contained=0)
        yield from self.walk(torchs, self.of_torch, _is_plain)

    def of_torch(self, value: Any, path: str, contained: int) -> Steps[None]:
        if is_tensor(value):
            yield from self.graph(value, "activation", "", contained=0)

    def nameless(self) -> Steps[None]:
        """Claim what no name leads to yet: a list that is being made, a sum in the middle of its rounds."""
        self.scope = NOBODY
        unclaimed = self.bytes.keys() - self.found.keys()
        ours = [each for each in tensors_alive() if id(own_storage(each)) in unclaimed]
        listed = in_containers(ours)
        for tensor in ours:
            if id(tensor) in listed:
                yield from self.kept(tensor, "", 2)
        for tensor in ours:
            yield from self.graph(tensor, "activation", "", contained=0)

    def rest(self) -> Iterator[Holding]:
        """Yield what nothing leads to: temporaries of the line that runs."""
        self.scope = NOBODY
        for key, (storage, _) in self.bytes.items():
            if key not in self.found:
                yield self._owned(storage, "temporary", "", 0)


def census(frames: list[FrameType], alive: Alive, epochs: set[int], at_once: bool = False) -> list[Holding]:
    """Return all that is known to be alive on a device, each storage once.

    Args:
        frames: those that were there, innermost first.
        epochs: of the rows of the recording that asks.
        at_once: what no name leads to is left to the temporaries, as to ask for it takes a look at all objects.
    """
    with no_collecting(), Quiet(), torch._C._DisableTorchDispatch():
        found = Census(alive, epochs)
        found.running.update(frames)
        try:
            deque(found.asked(*_roots(frames)), maxlen=0)
            if not at_once:
                deque(found.nameless(), maxlen=0)
            return [*found.found.values(), *found.rest()]
        finally:
            for frame in frames:
                forget_locals(frame)


def _roots(frames: list[FrameType]) -> tuple[list[Root], list[Root], list[Root]]:
    """Return the user's variables from the outermost frame on, the notebook's history, and what torch works on."""
    users: list[Root] = []
    packages: list[Root] = []
    torchs: list[Root] = []
    others: dict[int, list[Root]] = {}
    for frame in reversed(frames):
        code = frame.f_code
        scope = _scope(code)
        variables = [Root(name, value, scope) for name, value in list(frame.f_locals.items()) if may_lead(value)]
        kind = sites.files[code.co_filename]
        {sites.USER: users, sites.LIBRARY: packages}.get(kind, torchs).extend(variables)
        if kind == sites.USER and frame.f_locals is not frame.f_globals:
            file, shared = (code.co_filename, "", 0), list(frame.f_globals.items())
            others[id(frame.f_globals)] = [Root(*each, file) for each in shared if may_lead(each[1])]
    known = [*users, *packages, *(root for each in others.values() for root in each)]
    notebook = [root for root in known if root.name in HISTORY or root.name.replace("_", "", 1).isdigit()]
    return [root for root in known if root.name[:1] != "_" and root.name != "Out"], notebook, torchs


def _scope(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _is_plain(value: Any) -> bool:
    return type(value) in (list, tuple, dict)


def _saved(node: Any) -> Iterator[Any]:
    """Yield the tensors that a node keeps, without unpacking any."""
    kind: Any = type(node)
    for name in _fields(kind):
        try:
            raw = getattr(node, name)
        except RuntimeError:  # freed by a backward pass
            continue
        for each in raw if isinstance(raw, list | tuple) else (raw,):
            data = each.data if each is not None else None
            for value in data if isinstance(data, list | tuple) else (data,):  # what a pack hook has made of it
                if is_tensor(value):
                    yield value


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))
