"""What the hooks of accelerate do with a module: where its inputs go, and whether its data waits elsewhere.

model.hf_device_map                      {"body": 0, "head": 1}
model.head._hf_hook.execution_device     1: what `model.head` is given comes there before it runs
model.head._hf_hook.offload              True: its parameters are on meta, but while it runs

These attributes are public; they are looked up, and accelerate is not imported.
"""

from collections.abc import Iterator
from typing import Any, Final

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.source.kinds import device_named_by, is_module
from devtrace.source.safe_values import instance_dict

_MOST_ANCESTORS: Final = 20


def is_dispatched(module: object) -> bool:
    """Return whether a module has its parts on several devices, so that no move takes it as a whole."""
    parts = instance_dict(module).get("hf_device_map") if is_module(module) else None
    return type(parts) is dict and len({str(device) for device in parts.values()}) > 1


def owner_with_hook(case: MismatchCase) -> AccessPath | None:
    """Return the module that owns the odd tensor and whose inputs a hook brings to the expected device."""
    return next((owner for owner, hook in _hooked(case) if _device_of(hook) == case.expected_trait), None)


def waits_elsewhere(module: object, here: str) -> bool:
    """Return whether a module's parameters only wait on a device, and a hook computes with them on another."""
    return any(_device_of(hook) not in ("", here) for hook in _hooks_of(module))


def _device_of(hook: Any) -> str:
    to = hook.get("execution_device")
    return f"cuda:{to}" if type(to) is int else device_named_by(to)


def _hooks_of(module: object) -> Iterator[Any]:
    """Yield the attributes of a module's hooks, those in a sequence of hooks one by one."""
    hook = instance_dict(module).get("_hf_hook") if is_module(module) else None
    parts: Any = instance_dict(hook).get("hooks")
    yield from map(instance_dict, parts if type(parts) in (list, tuple) else [hook])


def owner_without_data(case: MismatchCase) -> AccessPath | None:
    """Return the module that owns what is on meta, and whose data a hook loads for the time in which it runs."""
    return next((owner for owner, hook in _hooked(case) if hook.get("offload") is True), None)


def _hooked(case: MismatchCase) -> Iterator[tuple[AccessPath, Any]]:
    """Yield the modules that own the odd tensor, or what it was made of, each with the attributes of its hooks."""
    computed_from = case.queries.ancestors(case.odd_tensor, _MOST_ANCESTORS)
    for name in (*case.names, *(name for row in computed_from for name in case.moment.names(row))):
        owner = name.prefix(len(name.references) - 1)
        yield from ((owner, hook) for hook in (_hooks_of(owner.last.value) if owner.references else ()))
