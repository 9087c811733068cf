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
    """A walk over one device's storages. Its steps stop at each object, so that a caller may go on later."""

    def __init__(self, alive: Alive, epochs: set[int]) -> None:
        self.epochs = epochs
        self.device = alive.device
        self.storages = {id(storage): (storage, size) for storage, size in alive.storages}
        self.is_complete = 0 < alive.allocated <= sum(size for _, size in self.storages.values())
        self.holdings: dict[int, Holding] = {}
        self.nodes: set[Any] = set()
        self.running: set[FrameType] = set()
        self.errors: set[int] = set()
        self.optimizers: list[Root] = []
        self.scope: tuple[str, str, int] = NOBODY

    def claim(self, tensor: Any, kind: str, name: str, contained: int = 1) -> None:
        """Note a tensor's holder, unless it has one."""
        storage = own_storage(tensor)
        key = id(storage)
        if storage is None or key in self.holdings:
            return
        if key not in self.storages:
            if self.is_complete or device_of(tensor) != self.device:
                return
            self.storages[key] = (storage, storage.nbytes())
        self.holdings[key] = self._holding(storage, kind, name, contained)

    def _holding(self, storage: Any, kind: str, name: str, contained: int) -> Holding:
        epoch, tensors, site, _ = getattr(storage, stamps.NAME, stamps.UNSTAMPED)
        tensor = next(iter(tensors.values()), -1) if epoch in self.epochs else -1
        _, size = self.storages[id(storage)]
        return Holding(kind, name, size, SiteId(site), TensorId(tensor), self.scope, contained)

    def claim_graph(self, tensor: Any, kind: str, name: str, contained: int = 1) -> Steps[None]:
        """Claim what autograd keeps for the backward pass of a tensor."""
        first = _node_of(tensor)
        stack = [first] if first is not None and first not in self.nodes else []
        self.nodes.update(stack)
        while stack and len(self.nodes) < MOST_NODES:
            node = stack.pop()
            for saved in _saved_tensors(node):
                self.claim(saved, kind, name, contained)
            for next_node, _ in node.next_functions:
                if next_node is not None and next_node not in self.nodes:
                    self.nodes.add(next_node)
                    stack.append(next_node)
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
                    scope_inside = _scope(value.__code__) if type(value) is FunctionType else None
                    for text, inner in inside(value):
                        if id(inner) not in seen or is_tensor(inner):
                            seen.add(id(inner))
                            depth = (contained or 1) + (text == "")
                            step = (path + text, depth, self.scope) if scope_inside is None else (text, 0, scope_inside)
                            queue.append((inner, *step))
                yield

    def claim_model(self, value: Any, path: str, contained: int) -> Steps[None]:
        """Claim the parts of a model; an optimizer's come after those of all models."""
        attributes = instance_dict(value)
        if "param_groups" in attributes and "state" in attributes:
            self.optimizers.append(Root(path, value, self.scope))
        elif "_parameters" in attributes and "_modules" in attributes:  # of one within another all is claimed already
            for _, tensor in registered(value):
                self.claim_parameter(tensor, path)
                yield

    def claim_parameter(self, tensor: Any, path: str) -> None:
        kind = "parameter" if issubclass(type(tensor), torch.nn.Parameter) else "buffer"
        self.claim(tensor, kind, path)
        self.claim_gradient(tensor, path)

    def claim_gradient(self, tensor: Any, path: str) -> None:
        gradient = gradient_of(tensor) if is_leaf(tensor) else None
        if gradient is not None:
            self.claim(gradient, "gradient", path)

    def claim_optimizers(self) -> Steps[None]:
        """Claim the state of optimizers, and the parameters whose model is gone."""
        for root in self.optimizers:
            self.scope = root.scope
            for _, _, tensor in states_of(root.value):
                self.claim(tensor, "optimizer-state", root.name)
                yield
            for tensor in parameters_of(root.value):
                self.claim_parameter(tensor, root.name)

    def claim_contained(self, value: Any, path: str, contained: int) -> Steps[None]:
        """Claim the tensors that containers, attributes and tracebacks hold, and the graphs that hang on these."""
        if is_tensor(value) and contained:
            self.claim_gradient(value, path)
            yield from self.claim_both(value, "named", "graph", path, contained)
        elif issubclass(type(value), BaseException):
            yield from self.claim_error(value, path)

    def claim_both(self, value: Any, kind: str, kind_of_graph: str, path: str, contained: int = 1) -> Steps[None]:
        if is_tensor(value):
            self.claim(value, kind, path, contained)
            yield from self.claim_graph(value, kind_of_graph, path, contained)

    def claim_error(self, error: BaseException | None, name: str) -> Steps[None]:
        """Claim what an exception keeps: the variables of frames that have ended."""
        while error is not None and id(error) not in self.errors:
            self.errors.add(id(error))
            for frame in (entry.tb_frame for entry in entries_of(error)):
                # A frame that runs keeps its own variables, as a module, or a notebook, does.
                if frame in self.running or frame.f_locals is frame.f_globals:
                    continue
                roots = [Root(name, value, self.scope) for value in list(frame.f_locals.values()) if may_lead(value)]
                yield from self.walk(roots, lambda value, *_: self.claim_both(value, "traceback", "traceback", name))
                forget_locals(frame)
            error = error.__cause__ or error.__context__

    def claim_from_roots(self, users: list[Root], history: list[Root], of_torch: list[Root]) -> Steps[None]:
        """Give each storage the first holder that leads to it, so the order of these passes decides; a step an object.

        In history, and in what torch's own code works on (the `input` of a Sequential), only containers are entered.
        """
        yield from self.walk(users, self.claim_model)
        yield from self.claim_optimizers()
        yield from self.walk(history, lambda value, *_: self.claim_both(value, "history", "history", "Out"), _has_items)
        yield from self.walk(users, self.claim_contained)
        for name in ("last_exc", "last_value"):
            error = getattr(sys, name, None)
            if isinstance(error, BaseException):
                yield from self.claim_error(error, f"sys.{name}")
        tensors = [root for root in users if is_tensor(root.value)]
        for root in tensors:
            self.scope = root.scope
            self.claim(root.value, "named", root.name, contained=0)
            self.claim_gradient(root.value, root.name)
            yield
        for root in tensors:
            self.scope = root.scope
            yield from self.claim_graph(root.value, "activation", root.name, contained=0)
        yield from self.walk(of_torch, self.claim_torchs_graphs, _has_items)

    def claim_torchs_graphs(self, value: Any, path: str, contained: int) -> Steps[None]:
        if is_tensor(value):
            yield from self.claim_graph(value, "activation", "", contained=0)

    def claim_nameless(self) -> Steps[None]:
        """Claim what no name leads to yet: a list that is being made, a sum in the middle of its rounds."""
        self.scope = NOBODY
        unclaimed = self.storages.keys() - self.holdings.keys()
        tensors = [tensor for tensor in tensors_alive() if id(own_storage(tensor)) in unclaimed]
        contained_ids = in_containers(tensors)
        for tensor in tensors:
            if id(tensor) in contained_ids:
                yield from self.claim_contained(tensor, "", 2)
        for tensor in tensors:
            yield from self.claim_graph(tensor, "activation", "", contained=0)

    def unclaimed(self) -> Iterator[Holding]:
        """Yield what nothing leads to: temporaries of the line that runs."""
        self.scope = NOBODY
        for key, (storage, _) in self.storages.items():
            if key not in self.holdings:
                yield self._holding(storage, "temporary", "", 0)


def census(frames: list[FrameType], alive: Alive, epochs: set[int], at_once: bool = False) -> list[Holding]:
    """Return all that is known to be alive on a device, each storage once.

    Args:
        frames: those that were there, innermost first.
        epochs: of the rows of the recording that asks.
        at_once: count what no name leads to as temporary: to find who holds it takes a look at all objects.
    """
    with no_collecting(), Quiet(), torch._C._DisableTorchDispatch():
        walk = Census(alive, epochs)
        walk.running.update(frames)
        try:
            deque(walk.claim_from_roots(*_roots(frames)), maxlen=0)
            if not at_once:
                deque(walk.claim_nameless(), maxlen=0)
            return [*walk.holdings.values(), *walk.unclaimed()]
        finally:
            for frame in frames:
                forget_locals(frame)


def _roots(frames: list[FrameType]) -> tuple[list[Root], list[Root], list[Root]]:
    """Return the user's variables from the outermost frame on, the notebook's history, and what torch works on."""
    users: list[Root] = []
    packages: list[Root] = []
    of_torch: list[Root] = []
    by_file: dict[int, list[Root]] = {}  # by the id of its globals
    for frame in reversed(frames):
        code = frame.f_code
        scope = _scope(code)
        variables = [Root(name, value, scope) for name, value in list(frame.f_locals.items()) if may_lead(value)]
        kind = sites.files[code.co_filename]
        {sites.USER: users, sites.LIBRARY: packages}.get(kind, of_torch).extend(variables)
        if kind == sites.USER and frame.f_locals is not frame.f_globals:
            file, shared = (code.co_filename, "", 0), list(frame.f_globals.items())
            by_file[id(frame.f_globals)] = [Root(name, value, file) for name, value in shared if may_lead(value)]
    all_roots = [*users, *packages, *(root for roots in by_file.values() for root in roots)]
    history = [root for root in all_roots if root.name in HISTORY or root.name.replace("_", "", 1).isdigit()]
    return [root for root in all_roots if root.name[:1] != "_" and root.name != "Out"], history, of_torch


def _scope(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _has_items(value: Any) -> bool:
    return type(value) in (list, tuple, dict)


def _saved_tensors(node: Any) -> Iterator[Any]:
    """Yield the tensors that a node keeps, without unpacking any."""
    kind: Any = type(node)
    for name in _saved_fields(kind):
        try:
            raw = getattr(node, name)
        except RuntimeError:  # freed by a backward pass
            continue
        for saved in raw if isinstance(raw, list | tuple) else (raw,):
            data = saved.data if saved is not None else None
            for value in data if isinstance(data, list | tuple) else (data,):  # what a pack hook has made of it
                if is_tensor(value):
                    yield value


@cache
def _saved_fields(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))
