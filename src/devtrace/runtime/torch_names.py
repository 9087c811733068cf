"""Private names of torch, which a release may change: `torch_names.tsv` says which, of what kind, and for what part.

A part of devtrace looks here before it is installed. On a torch that nobody tested it is then left out with a note,
where it would otherwise fail in the middle of a program.

    fault_of("gradients")                                   # "torch.autograd.Function.apply is a str", or ""
    take("_C._current_autograd_node", instead=lambda: None)  # torch's own, unless its part has a fault
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

import torch

from devtrace.runtime.patches import Patches
from devtrace.runtime.requirements import release_of, versions
from devtrace.runtime.tables import rows_of
from devtrace.words.catalogue import family, sentence
from devtrace.words.errors import SetupError, named

KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "call": lambda value: callable(value) and not isinstance(value, type),
    "code": lambda value: inspect.isfunction(value),
    "class": lambda value: isinstance(value, type),
    "getter": lambda value: hasattr(type(value), "__get__") and not inspect.isfunction(value),
    "binds": lambda value: hasattr(type(value), "__get__") and callable(value.__get__(None, torch.autograd.Function)),
    "table": lambda value: isinstance(value, dict | list | set),
    "module": lambda value: isinstance(value, ModuleType),
}
"""What a value of a kind is; another kind is the name of its type."""


class Name(NamedTuple):
    """One name: `path` begins at torch."""

    part: str
    kind: str
    since: str
    use: str
    path: str

    @property
    def is_replaced(self) -> bool:
        """Return whether devtrace sets it, whatever torch has there."""
        return self.kind.startswith(("put", "new"))

    @property
    def is_to_come(self) -> bool:
        """Return whether this torch is older than the name."""
        return bool(self.since) and release_of(torch.__version__) < release_of(self.since)

    @property
    def fault(self) -> str:
        """Say what is not as needed; nothing where it is, or where this torch is older than the name."""
        kind, _, parameters = self.kind.partition("(")
        if self.is_replaced or self.is_to_come or ("distributed" in self.path and not torch.distributed.is_available()):
            return ""
        try:
            value = found(self.path)
        except (AttributeError, ImportError):
            return f"torch.{self.path} is missing"
        if not (KINDS[kind](value) if kind in KINDS else type(value).__name__ == kind):
            return f"torch.{self.path} is {value if inspect.isclass(value) else type(value)}"
        with suppress(TypeError, ValueError):  # a function of C's may have no signature
            accepted = ", ".join(inspect.signature(value).parameters)
            return "" if accepted.startswith(parameters.rstrip(")")) else f"torch.{self.path} takes ({accepted})"
        return ""


@cache
def names() -> dict[str, list[Name]]:
    """Return all names by their part."""
    parts: dict[str, list[Name]] = defaultdict(list)
    for part, kind, since, use, paths in rows_of("runtime/torch_names.tsv"):
        parts[part] += [Name(part, kind, since, use, path) for path in paths.split()]
    return dict(parts)


def found(path: str) -> Any:
    """Return what has a name; a method of a class as it is stored there, not yet bound."""
    value: Any = torch
    module = "torch"
    for step in path.split("."):
        name, is_call, argument = step.partition("(")
        module = f"{module}.{name}"
        if isinstance(value, type) and name in vars(value):
            value = vars(value)[name]
        elif isinstance(value, ModuleType) and not hasattr(value, name):
            value = import_module(module)
        else:
            value = getattr(value, name)
        if is_call:
            value = value(*map(int, filter(None, [argument.rstrip(")")])))
    return value


@cache
def fault_of(part: str) -> str:
    """Say what a part lacks on this torch; nothing if all its names are as they should be."""
    return next(filter(None, (name.fault for name in names().get(part, ()))), "")


def take(path: str, part: str, *, instead: Any) -> Any:
    """Return what torch has by a name, or a stand-in where the part that it is for has a fault."""
    return instead if fault_of(part) else found(path)


def returning(value: Any) -> Callable[..., Any]:
    """Return a function with one answer, whatever it is asked."""
    return lambda *args, **kwargs: value


def replace(part: str, answers: Mapping[str, object], patches: Patches) -> None:
    """Replace the names of a part that have an answer in the inventory."""
    for name in names()[part]:
        owner, _, attribute = name.path.rpartition(".")
        if answer := name.kind.partition(":")[2]:
            patches.set(found(owner), attribute, answers[answer])


def need_names() -> None:
    """Raise where torch lacks what nothing goes without."""
    if fault := fault_of("runtime"):
        raise SetupError.of("torch-unfit", fault=fault, **versions())


def install_part(part: str, install: Callable[[ExitStack], object], patches: Patches, undo: ExitStack) -> str:
    """Install a part, or undo what was installed of one that fails. Return its fault."""
    count_before = len(patches.replaced)
    fault = fault_of(part)
    part_undo = ExitStack()
    undo.push(part_undo)  # to which a part may add as long as it is installed
    try:
        if not fault:
            install(part_undo)
    except Exception as error:  # noqa: BLE001 (a torch that nobody tested)
        fault = named(error)
        part_undo.close()
        patches.undo(count_before)
    return fault


_LOST: Final = family(
    "torch-part.*", "torch-part.backward", "torch-part.module_moves", "torch-part.module_tree", "torch-part.waits",
    "torch-part.threads", "torch-part.autocasts", "torch-part.synchronizing", "torch-part.printing",
    "torch-part.eager_paths", "torch-part.scripting", "torch-part.gradients",
    "torch-part.elements", "torch-part.scripts", "torch-part.sharing", "torch-part.parallel",
    "torch-part.process_groups", "torch-part.profiles", "torch-part.checks", "torch-part.upcast_ops",
    "torch-part.legacy_tensor_types", "torch-part.autocast", "torch-part.compiling", "torch-part.cuda_only",
    "torch-part.warned_lines", "torch-part.wrappers", "torch-part.memory",
)  # fmt: skip


def note_without(part: str, fault: str) -> str:
    """Say what is lost where a part is left out."""
    return sentence("note.torch-part", lost=sentence(_LOST[part]), fault=fault, **versions())
