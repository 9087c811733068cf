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
    own: Any = instance_dict(module) if is_module(module) else {}
    kept = [(each, f".{key}", False) for key, each in own.items() if key[:1] == "_" and key.endswith("_hook")]
    run = [own.get("forward"), *(hook for hook, _ in hooks_of(module, before=True))] if own else []
    found = (*_kept_by(kept), *(each for value in run for each in _moves_in(value)))
    of_accelerators = (each for each in found if each.device not in ("", HOST, "meta"))
    return min(of_accelerators, key=lambda each: each.stay, default=None)


def goes_as_a_whole(module: object, hooks: Mapping[int, Hook]) -> bool:
    """Return whether a move takes a module along for good: none of the hooks, by id, moves it or is of its parts."""
    hook, below = hooks.get(id(module)), (each.value for each in stored(module) if each.kind == "module")
    are_free = (id(each) not in hooks and goes_as_a_whole(each, hooks) for each in below)
    return not hooks or ((hook is None or hook.stay) and all(are_free))


def _kept_by(waiting: list[tuple[Any, str, bool]]) -> Iterator[Hook]:
    """Yield the devices that hooks keep, or parts of theirs, the nearest first."""
    for value, code, stay in waiting:
        own = instance_dict(value)
        stay = stay or own.get("offload") is False
        for key, each in (*own.items(), *(("", each) for each in items_of(value))):
            step = code and key and f"{code}.{key}"  # empty for what is in a container
            is_number = type(each) is int and key.endswith("device")
            if device := f"cuda:{each}" if is_number else in_full(device_named_by(each)):
                yield Hook(device, step, stay)
            elif may_lead(each) and not is_tensor(each) and not is_module(each) and len(waiting) < _MOST_PARTS:
                waiting.append((each, step, stay))


def _moves_in(value: Any) -> Iterator[Hook]:
    """Yield where a function moves modules: of such a move nobody keeps the result."""
    for function in run_by(value):  # of a method, a `partial` or an object with `__call__`
        code = function.__code__
        known = dict.fromkeys(code.co_varnames[:1], getattr(value, "__self__", value))
        with suppress(ValueError):  # a variable that is not bound yet
            known |= zip(code.co_freevars, (each.cell_contents for each in function.__closure__ or ()), strict=True)
        source = read(code.co_filename)
        for call in calls_in(source.function_of_code(code) or NO_CODE):
            if is_move(called_name(call)) and alone(source.parent(call)) is call:
                given = given_trait(call)
                named = worth(given, Scope(known, function.__globals__)) if given is not None else called_name(call)
                yield Hook(in_full(device_named_by(named)))
