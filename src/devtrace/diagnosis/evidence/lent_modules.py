"""Modules whose weights wait on one device, and compute on another: a hook brings them there for the time of a call.

encoder._hf_hook.execution_device       a hook that a module keeps, of accelerate or diffusers, names the device
def bring(module, args):                one that runs before `forward`, or in its place, moves the module
    module.to("cuda")

No package is imported. A hook of `dispatch_model` brings only inputs: the weights of its module stay there.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from devtrace.source.kinds import device_named_by, is_module
from devtrace.source.matching import alone, called_name, calls_in, given_trait
from devtrace.source.object_walk import hooks_of, is_tensor, items_of, may_lead, stored
from devtrace.source.parsing import NO_CODE, read
from devtrace.source.safe_values import Scope, instance_dict, run_by, worth
from devtrace.source.vocabulary import HOST, in_full, is_move

_MOST_PARTS: Final = 100


class Hook(NamedTuple):
    """Device to which a hook brings inputs, and weights unless they `stay`; `code`: how a module is asked for it."""

    device: str
    code: str = ""
    stay: bool = False


def hook_of(module: object) -> Hook | None:
    """Return the hook of a module that names an accelerator, or moves it there."""
    attributes: Any = instance_dict(module) if is_module(module) else {}
    kept = [(hook, f".{key}", False) for key, hook in attributes.items() if key[:1] == "_" and key.endswith("_hook")]
    run = [attributes.get("forward"), *(hook for hook, _ in hooks_of(module, before=True))] if attributes else []
    hooks = (*_named_by_attributes(kept), *(hook for function in run for hook in _moves_in(function)))
    of_accelerators = (hook for hook in hooks if hook.device not in ("", HOST, "meta"))
    return min(of_accelerators, key=lambda hook: hook.stay, default=None)


def goes_as_a_whole(module: object, hooks: Mapping[int, Hook]) -> bool:
    """Return whether a move takes a module along for good: none of the hooks, by id, moves it or is of its parts."""
    hook, children = hooks.get(id(module)), (part.value for part in stored(module) if part.kind == "module")
    are_free = (id(child) not in hooks and goes_as_a_whole(child, hooks) for child in children)
    return not hooks or ((hook is None or hook.stay) and all(are_free))


def _named_by_attributes(waiting: list[tuple[Any, str, bool]]) -> Iterator[Hook]:
    """Yield the devices that attributes of hooks name, or of their parts, the nearest first; `waiting` grows."""
    for owner, code, stay in waiting:
        attributes = instance_dict(owner)
        stay = stay or attributes.get("offload") is False
        for key, value in (*attributes.items(), *(("", item) for item in items_of(owner))):
            path = code and key and f"{code}.{key}"  # empty for what is in a container
            is_number = type(value) is int and key.endswith("device")
            if device := f"cuda:{value}" if is_number else in_full(device_named_by(value)):
                yield Hook(device, path, stay)
            elif may_lead(value) and not is_tensor(value) and not is_module(value) and len(waiting) < _MOST_PARTS:
                waiting.append((value, path, stay))


def _moves_in(hook: Any) -> Iterator[Hook]:
    """Yield the devices to which a function moves modules: statements as `module.to("cuda")`, which keep no result."""
    for function in run_by(hook):  # of a method, a `partial` or an object with `__call__`
        code = function.__code__
        variables = dict.fromkeys(code.co_varnames[:1], getattr(hook, "__self__", hook))
        with suppress(ValueError):  # a variable that is not bound yet
            variables |= zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True)
        source = read(code.co_filename)
        for call in calls_in(source.function_of_code(code) or NO_CODE):
            if is_move(called_name(call)) and alone(source.parent(call)) is call:
                node = given_trait(call)
                device = worth(node, Scope(variables, function.__globals__)) if node is not None else called_name(call)
                yield Hook(in_full(device_named_by(device)))
