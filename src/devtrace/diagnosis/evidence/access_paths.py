"""Access paths: every chain of names that leads to a tensor from the variables of the frames on the stack.

`Walk` visits once what the frames reach, without running a line of anybody's code, and notes for each object the
references to it. So a tensor's path from an inner frame (`self.table`) comes free with that from the outermost one
(`model.positions.table`). Beside it, this is the only module of diagnosis that knows torch's types.
"""

from __future__ import annotations

import sys
import types
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from devtrace.source.object_walk import Reference, ReferenceKind, is_tensor, items_of, may_lead, members, registered
from devtrace.source.safe_values import attribute, class_dict, instance_dict
from devtrace.source.user_code import OF_HOSTS, is_torch_or_ours, owner_of

MOST_OBJECTS: Final = 60_000
MOST_DEPTH: Final = 12
MOST_NAMES: Final = 12


@dataclass(frozen=True)
class AccessPath:
    """One way to name an object: the references that lead to it from a variable, each with its text."""

    references: tuple[Reference, ...]
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def code(self) -> str | None:
        """Return the path as an expression that source may hold: `model.encoder[0].down`."""
        code = ""
        for reference in self.references:
            if reference.kind in ("closure", "state") and code:
                return None
            is_index = code and reference.kind != "item" and str(reference.key).isdigit()
            code += f"[{reference.key}]" if is_index else reference.text
        return code

    @property
    def objects(self) -> tuple[Any, ...]:
        """Return the objects on the path, the named one last."""
        return tuple(reference.value for reference in self.references)

    @property
    def frame(self) -> int:
        """Number of the frame with the path's first variable; 0 is the innermost."""
        return self.references[0].frame

    @property
    def last(self) -> Reference:
        return self.references[-1]

    def prefix(self, length: int) -> AccessPath:
        """Return the path of an object on the way."""
        return AccessPath(self.references[:length], self.texts[:length])

    def beside(self, reference: Reference) -> AccessPath:
        """Return the path of another object of the same owner."""
        return AccessPath((*self.references[:-1], reference), (*self.texts[:-1], reference.text))

    def modules(self) -> list[tuple[int, torch.nn.Module]]:
        """Return the modules on the path with their indexes in `objects`, outermost first."""
        return [(i, value) for i, value in enumerate(self.objects) if is_module(value)]

    def registered_from(self, index: int) -> bool:
        """Return whether `.to()` of the module at an index reaches the named object."""
        return all(reference.kind in ("module", "parameter", "buffer") for reference in self.references[index + 1 :])

    @property
    def is_step_count(self) -> bool:
        """True of an optimizer's count of steps, which Adam and its kin keep on the CPU by design."""
        by_parameter = any(reference.kind == "state" for reference in self.references[:-1])
        return self.last.kind == "item" and self.last.key == "step" and by_parameter

    @property
    def is_state_of_an_optimizer(self) -> bool:
        by_optimizer = any(is_optimizer(value) for value in self.objects[:-1])
        return by_optimizer and any(reference.kind == "state" for reference in self.references)

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Lowest for the best: an optimizer's state, not by its groups, no loose list; a global; outermost, short."""
        optimizer, state = any(is_optimizer(value) for value in self.objects[:-1]), self.is_state_of_an_optimizer
        return (
            -1 if state else 2 * optimizer + self.listed,
            -sys.maxsize if self.last.kind == "global" else -self.frame,
            len(self.references),
            len(self.text),
        )

    @property
    def listed(self) -> bool:
        """True if the path leads through a list that no module holds: `trainable[0]`, but not `tower.stages[0]`."""
        for reference in self.references:
            if is_module(reference.owner):
                return False
            if reference.kind == "item" and type(reference.owner) in (list, tuple, deque):
                return True
        return False


def modules_in(value: object) -> list[Any]:
    """Return the modules in a list or a container module."""
    items = items_of(value) or items_of(instance_dict(value).get("_modules"))
    return [each for each in items if is_module(each)]


def is_module(value: object) -> bool:
    return issubclass(type(value), torch.nn.Module)


def is_parameter(value: object) -> bool:
    return issubclass(type(value), torch.nn.Parameter)


def first_parameter(module: Any) -> Any:
    return next((tensor for _, tensor in registered(module) if is_parameter(tensor)), None)


def is_optimizer(value: object) -> bool:
    return issubclass(type(value), torch.optim.Optimizer)


def is_trained_leaf(value: object) -> bool:
    """Return whether a value is a tensor that an optimizer may train: a leaf that requires a gradient."""
    if not is_tensor(value):
        return False
    with torch_answers():
        return bool(value.requires_grad and value.is_leaf)  # type: ignore[attr-defined]


def requires_grad(tensor: Any) -> bool:
    with torch_answers():
        return bool(tensor.requires_grad)


def torch_answers() -> AbstractContextManager[object]:
    """Inside, torch answers a tensor's questions, not a subclass of its."""
    return torch._C.DisableTorchFunctionSubclass()


def device_shape_and_dtype(tensor: Any) -> tuple[str, tuple[int, ...], str]:
    device, shape, dtype = (getattr(torch.Tensor, name).__get__(tensor) for name in ("device", "shape", "dtype"))
    return str(device), tuple(map(int, shape)), str(dtype).removeprefix("torch.")


def trait_of_parameter(tensor: object, of: str) -> str:
    """Return the device, or dtype, of a plain parameter; of any other tensor it is empty."""
    if type(tensor) is not torch.nn.Parameter:
        return ""
    device, _, dtype = device_shape_and_dtype(tensor)
    return device if of == "device" else dtype


def untransformed(value: object) -> object:
    """Return the tensor that `vmap`, `grad` and the like go through with a wrapper; any other value as it is."""
    functorch: Any = torch._C._functorch
    while is_tensor(value) and functorch.is_functorch_wrapped_tensor(value):
        value = functorch.get_unwrapped(value)
    return value


def stays_on_host(value: object) -> bool:
    """Return whether an object's tensors belong on the CPU: a data set, or its loader."""
    data = torch.utils.data
    return issubclass(type(value), (data.Dataset, data.DataLoader, data.Sampler))


def accelerators() -> list[str]:
    """Return the accelerators that this process has, simulated ones too."""
    if torch.cuda.is_available():
        return [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    found = torch.accelerator.current_accelerator(check_available=True)
    return [] if found is None else [f"{found.type}:{number}" for number in range(torch.accelerator.device_count())]


# While devices are simulated, torch.Generator and torch.device are other classes than those of torch._C.
def is_generator(value: object) -> bool:
    return issubclass(type(value), torch._C.Generator)


def device_named_by(value: object) -> str:
    """Return the device that a generator, a torch.device or a string of the user's names; empty for none."""
    if type(value) is torch._C.device:
        return str(value)
    if is_generator(value):
        return str(value.device)  # type: ignore[attr-defined]
    try:
        return str(torch.device(value)) if type(value) is str else ""
    except RuntimeError:
        return ""


def dtype_named_by(value: object) -> str:
    return str(value).removeprefix("torch.") if type(value) is torch.dtype else ""


def names_trait(value: object, trait: str) -> bool:
    """Return whether a value names a device, as `torch.device` or as text, or is a dtype."""
    named = device_named_by(value) or dtype_named_by(value)
    return trait in (named, f"{named}:0")


def attributes_that_name(trait: str, owner: Any) -> Iterator[tuple[str, bool]]:
    """Yield the attributes of an object that name a device, and whether each is private.

    Private is an underscore name, and all but `device` in classes of torch or a package.
    """
    for key, value in {"device": attribute(owner, "device"), **instance_dict(owner)}.items():
        if names_trait(value, trait) and str(key).isidentifier():
            yield key, key != "device" and (str(key).startswith("_") or _is_installed(type(owner)))


@dataclass
class Walk:
    """All that the variables of some frames (innermost first) lead to, with the references that lead there."""

    frames: list[dict[str, tuple[Any, ReferenceKind]]]
    follows: Callable[[object], bool] = lambda value: True
    most_objects: int = MOST_OBJECTS
    most_depth: int = MOST_DEPTH
    most_items: int | None = None
    references: dict[int, list[Reference]] = field(default_factory=dict)
    objects: dict[int, Any] = field(default_factory=dict)
    tensors: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        queue: deque[tuple[Any, int]] = deque()
        for number in reversed(range(len(self.frames))):
            for name, (value, kind) in self.frames[number].items():
                if may_lead(value):
                    self._add(Reference(None, kind, name, value, number), 0, queue)
        while queue and len(self.objects) < self.most_objects:
            owner, depth = queue.popleft()
            for reference in members(owner, self.most_items):
                self._add(reference, depth + 1, queue)

    def _add(self, reference: Reference, depth: int, queue: deque[tuple[Any, int]]) -> None:
        value = reference.value
        key = id(value)
        known = self.references.get(key)
        if known is not None:
            if len(known) < MOST_NAMES:
                known.append(reference)
            return
        self.references[key] = [reference]
        self.objects[key] = value
        if type(value) is not dict and is_tensor(value):
            self.tensors.append(value)
        elif depth < self.most_depth and _is_of_program(reference) and self.follows(value):
            queue.append((value, depth))

    def names(self, value: object) -> list[AccessPath]:
        """Return the access paths of an object, best first: of each object on the way only its shortest ones."""
        found: list[AccessPath] = []
        passed = Counter[int]()
        queue: deque[tuple[object, tuple[Reference, ...]]] = deque([(value, ())])
        while queue:
            reached, below = queue.popleft()
            for reference in self.references.get(id(reached), ()):
                owner, path = reference.owner, (reference, *below)
                if owner is None:
                    found.append(AccessPath(path, tuple(self._text(each) for each in path)))
                elif len(below) < MOST_DEPTH and all(each.value is not owner for each in path):
                    passed[id(owner)] += 1
                    if passed[id(owner)] <= MOST_NAMES:
                        queue.append((owner, path))
        return sorted(found, key=lambda name: name.rank)[:MOST_NAMES]

    def first_path(self, value: object) -> AccessPath:
        """Return the access path by which the walk found an object first: a shortest one."""
        references = deque([self.references[id(value)][0]])
        while references[0].owner is not None:
            references.appendleft(self.references[id(references[0].owner)][0])
        keyed = (self.first_path(each.key).text if self._is_keyed(each) else "" for each in references)
        texts = (f"[{key}]" if key else each.text for each, key in zip(references, keyed, strict=True))
        return AccessPath(tuple(references), tuple(texts))

    def _text(self, reference: Reference) -> str:
        return f"[{self.names(reference.key)[0].text}]" if self._is_keyed(reference) else reference.text

    def _is_keyed(self, reference: Reference) -> bool:
        """Return whether the key of a reference has access paths itself."""
        return reference.kind == "state" and id(reference.key) in self.references


def _is_of_program(reference: Reference) -> bool:
    """Return whether names may lead on from an object: no module's globals, no package's class, none of IPython's."""
    value, kind = reference.value, type(reference.value)
    if kind is dict:  # of these a program has the most
        return reference.owner is None or "__builtins__" not in value
    if issubclass(kind, type):
        return not _is_installed(value)
    module = value.__globals__.get("__name__") if kind is types.FunctionType else class_dict(kind).get("__module__")
    return type(module) is not str or OF_HOSTS.match(module) is None


def _is_installed(kind: type) -> bool:
    """Return whether a class is torch's or a package's."""
    file = instance_dict(sys.modules.get(str(class_dict(kind).get("__module__")))).get("__file__") or ""
    return is_torch_or_ours(str(file)) or owner_of(str(file)) == "package"


def roots(frame: types.FrameType) -> dict[str, tuple[Any, ReferenceKind]]:
    """Return a frame's variables, and the globals that its code mentions."""
    code = frame.f_code
    found: dict[str, tuple[Any, ReferenceKind]] = {}
    if frame.f_locals is not frame.f_globals:
        for name, value in frame.f_locals.items():
            found[name] = value, "closure" if name in code.co_freevars else "variable"
    for name in code.co_names:
        if name not in found and name in frame.f_globals:
            found[name] = frame.f_globals[name], "global"
    return found
