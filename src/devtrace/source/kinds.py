"""What an object is, or was: a module, a parameter, a device. Answered for stand-ins, and for live objects alike.

No class is asked: what it inherits from is read, and torch is not imported.
"""

import re
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from devtrace.source import stand_ins
from devtrace.source.object_walk import is_tensor, items_of
from devtrace.source.safe_values import attribute, class_dict, classes_of, full_name_of, instance_dict
from devtrace.source.user_code import OF_HOSTS, is_torch_or_ours, owner_of
from devtrace.source.vocabulary import kinds


def stands_for(value: object, kind: type) -> bool:
    """Return whether an object is a stand-in of a kind, or an object of the class of torch that it stands for."""
    return any(base is kind or stand_ins.OF_TORCH.get(full_name_of(base)) is kind for base in classes_of(type(value)))


def is_module(value: object) -> bool:
    return stands_for(value, stand_ins.Module)


def is_optimizer(value: object) -> bool:
    return stands_for(value, stand_ins.Optimizer)


def is_parameter(value: object) -> bool:
    return issubclass(type(value), stand_ins.Parameter)


def modules_in(value: object) -> list[Any]:
    """Return the modules in a list or a container module."""
    items = items_of(value) or items_of(instance_dict(value).get("_modules"))
    return [item for item in items if is_module(item)]


def is_trained_leaf(value: object) -> bool:
    """Return whether a value is a tensor that an optimizer may train: a leaf that requires a gradient."""
    return is_tensor(value) and value._needs_gradient and value._is_leaf  # type: ignore[attr-defined]


def is_frozen(value: object) -> bool:
    """Return whether nobody can assign to an object's fields or items: of a tuple, or of a frozen dataclass."""
    options = [class_dict(kind).get("__dataclass_params__") for kind in classes_of(type(value))]
    return issubclass(type(value), tuple) or any(getattr(option, "frozen", False) for option in options)


def device_named_by(value: object) -> str:
    """Return the device that a generator, a `torch.device` or a text of the user's names; empty for none."""
    kind = type(value)
    if kind is str:
        match = re.fullmatch(r"([a-z]+)(:(?:0|[1-9]\d{0,2}))?", str(value))
        return str(value) if match is not None and match[1] in kinds() else ""
    if kind is stand_ins.Device or kind is stand_ins.Generator or full_name_of(kind) == ("torch", "device"):
        return str(value)
    return ""


def dtype_named_by(value: object) -> str:
    is_dtype = type(value) is stand_ins.Dtype or full_name_of(type(value)) == ("torch", "dtype")
    return str(value).removeprefix("torch.") if is_dtype else ""


def names_trait(value: object, trait: str) -> bool:
    """Return whether a value names the device or the dtype `trait`; the text "cuda" names "cuda:0"."""
    name = device_named_by(value) or dtype_named_by(value)
    return trait in (name, f"{name}:0")


def attributes_that_name(trait: str, owner: Any) -> Iterator[tuple[str, bool]]:
    """Yield the attributes of an object that name the device or dtype `trait`, and whether each is private.

    Private: with an underscore; in a class of torch or a package, all but `device`.
    """
    for key, value in {"device": attribute(owner, "device"), **instance_dict(owner)}.items():
        if names_trait(value, trait) and str(key).isidentifier():
            yield key, key != "device" and (str(key).startswith("_") or is_installed(type(owner)))


def file_of(kind: type) -> str:
    """Return the file of the module that defines a class; a stand-in for a class stores it."""
    members = class_dict(kind)
    module = members if "__file__" in members else instance_dict(sys.modules.get(full_name_of(kind)[0]))
    return str(module.get("__file__") or "")


def is_installed(kind: type) -> bool:
    """Return whether a class is torch's or a package's."""
    file = file_of(kind)
    return is_torch_or_ours(file) or owner_of(file) == "package"


def users_file(value: Any) -> str:
    """Return the file of an imported module of the user's; empty for anything else."""
    file = instance_dict(value).get("__file__") if issubclass(type(value), ModuleType) else None
    return file if type(file) is str and owner_of(file) == "user" else ""


def is_of_program(value: Any, *, is_variable: bool) -> bool:
    """Return whether to look inside an object: not in IPython's, in globals, in a package's class, or in `sys`."""
    kind = type(value)
    if value is sys:
        return False
    if kind is dict:  # of these a program has the most
        return is_variable or "__builtins__" not in value
    if issubclass(kind, type):
        return not is_installed(value)
    module = value.__module__ if kind is FunctionType else class_dict(kind).get("__module__")
    return type(module) is not str or OF_HOSTS.match(module) is None


def requires_grad(tensor: Any) -> bool:
    return bool(tensor._needs_gradient)
