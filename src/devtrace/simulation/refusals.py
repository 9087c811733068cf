"""What CUDA says of an operator before it computes: dtypes that it refuses, and what a program asks to be told.

Dtypes that the CPU computes in and CUDA refuses are refused on a device as well, in CUDA's words: `cuda_refusals.tsv`
has them by operator. What has none of its own is judged by the operators that it calls.

Where a program asks (`torch.cuda.set_sync_debug_mode`, `torch.use_deterministic_algorithms`) it is told that the CPU
waits, or that results do not repeat: `cuda_on_request.tsv` has the operators.
"""

import functools
import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from devtrace.runtime.tables import rows_of
from devtrace.simulation.storage_tags import FLOATING, HOST, given_to, tag_of, tensors_in

Handler = Callable[..., Any]
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
_REPORT = (
    "file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support"
)


@functools.cache
def table() -> dict[str, dict[torch.dtype, tuple[str, str]]]:
    """Operator without overload -> dtypes that CUDA refuses: its words, and when."""
    refusals: dict[str, dict[torch.dtype, tuple[str, str]]] = {}
    for operators, names, words, *condition in rows_of("simulation/cuda_refusals.tsv"):
        for operator in operators.split():
            refused = ((getattr(torch, name), (words, "".join(condition))) for name in names.split())
            refusals.setdefault(operator, {}).update(refused)
    return refusals


def with_refusals(func: Any, handler: Handler) -> Handler:
    """Return a handler that first raises for dtypes that CUDA refuses; the handler itself for most operators."""
    schema = func._schema
    refused = table().get(schema.name.removeprefix("aten::").rstrip("_"))
    place = next((index for index, argument in enumerate(schema.arguments) if str(argument.type) == "Tensor"), None)
    if refused is None or place is None:
        return handler

    def unless_refused(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
        dtype: Any = getattr(args[place], "dtype", None) if place < len(args) else None  # C++ may hand on a number
        words, condition = refused.get(dtype, ("", ""))
        if words and _holds(condition, _values_by_name(func, args, kwargs)):
            owners = {tag_of(tensor).owner for tensor in tensors_in((*args, *kwargs.values()))}
            is_one_device = len(owners) == 1  # of several, devices come first
            if (words == "-" or is_one_device) and not owners <= {HOST, FLOATING}:
                if is_one_device and not any(spec.alias_info for spec in func._schema.arguments):
                    try:
                        handler(mode, func, args, kwargs)  # raises for shapes of which torch speaks first
                    except RuntimeError as error:  # the CPU may refuse the dtype, too; oneDNN's error names it
                        if not isinstance(error, NotImplementedError) and _dtype_name(args) not in str(error):
                            raise
                _refuse(func, words, args, kwargs)
        return handler(mode, func, args, kwargs)

    return unless_refused


def _holds(condition: str, values: Mapping[str, Any]) -> bool:
    """`both` matrices are of one dtype; `weights`: it is given, `!weights`: not; `mode=2`, `mode!=2`; empty: always."""
    if condition == "both":
        return values["self"].dtype is values["mat2"].dtype
    name, is_compared, value = condition.partition("=")
    if is_compared:
        return (str(values.get(name.rstrip("!"))) == value) != name.endswith("!")
    return not name or (values.get(name.lstrip("!")) is None) == name.startswith("!")


def _values_by_name(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    return {spec.name: value for spec, value in given_to(func, args, kwargs)}


def _dtype_name(args: Any) -> str:
    """Return torch's name of the first tensor's dtype in errors: `Float8_e5m2fnuz`."""
    return torch._C.TensorBase.type(next(tensors_in(args)))[len("torch.") : -len("Tensor")]


def _refuse(func: Any, words: str, args: Any, kwargs: Any) -> None:
    if words == "-":
        func.redispatch(_CUDA, *args, **kwargs)  # raises: it has no such kernel
    elif " " in words:  # a whole sentence, and no kernel's name
        raise RuntimeError(words.format(_dtype_name(args)))
    raise NotImplementedError(f""""{words}" not implemented for '{_dtype_name(args)}'""")


WAITS = SimpleNamespace(level=0, are_open=True)
"""Torch's sync debug mode: 1 warns, 2 raises. `are_open`: no mode has to see the read of a value."""


@functools.cache
def requests() -> dict[str, tuple[str, str]]:
    """Operator without overload -> a kernel whose results vary, or "" where the CPU waits; and the condition."""
    rows = rows_of("simulation/cuda_on_request.tsv")
    return {name: (kernel, condition) for names, kernel, condition in rows for name in names.split()}


def show_waits(level: int) -> None:
    """Keep the level of `set_sync_debug_mode`. The caller makes all handlers anew, which depend on it."""
    WAITS.level, WAITS.are_open = level, not level


def with_reports(func: Any, handler: Handler) -> Handler:
    """Return a handler that first reports a wait, or a result that may vary, where the program asks for that."""
    request = requests().get(func._schema.name.removeprefix("aten::").rstrip("_"))
    if request is None or not (request[0] or WAITS.level):  # without a kernel it is a wait
        return handler
    kernel, condition = request

    def report_first(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if kernel and torch._C._get_deterministic_algorithms() and _is_to_report(condition, func, args, kwargs):
            report_nondeterminism(kernel)
        elif not kernel and _is_to_report(condition, func, args, kwargs):
            report_wait()
        return handler(mode, func, args, kwargs)

    return report_first


def _is_to_report(condition: str, func: Any, args: Any, kwargs: Any) -> bool:
    values = _values_by_name(func, args, kwargs)
    on_host = [tag_of(t).owner is HOST for t in tensors_in(values.values()) if tag_of(t).owner is not FLOATING]
    if condition == "blocking":
        target = values.get("device")
        on_host += [target.type == "cpu"] if target is not None and (target.type, target.index) != ("cpu", None) else []
        return len(set(on_host)) > 1 and not values.get("non_blocking")
    if all(on_host):
        return False
    if condition == "masks":
        if any(tag_of(tensor).owner is HOST for tensor in tensors_in(args[1:2])):
            return True  # an index of the CPU is copied
        masks = [tensor for tensor in tensors_in(args[1:2]) if tensor.dtype in (torch.bool, torch.uint8)]
        return bool(masks) and not (len(masks) == 1 and _is_masked_fill(args))
    return _holds(condition, values)


def _is_masked_fill(args: Any) -> bool:
    """Return whether the CPU need not wait: `x[mask] = 0.5`, with one index and a number on the CPU, becomes a fill."""
    indexes = sum(index is not None for index in args[1])
    value = args[2] if len(args) > 2 and not any(args[3:4]) else None
    is_host_number = isinstance(value, torch.Tensor) and value.numel() == 1 and tag_of(value).owner.device is None
    return indexes == 1 and is_host_number


def report_wait() -> None:
    """Say in torch's words that the CPU waits, where a program asks."""
    if WAITS.level:
        _warn("called a synchronizing CUDA operation", raises=WAITS.level > 1)


def report_nondeterminism(kernel: str) -> None:
    """Say in torch's words that a kernel of CUDA's does not give the same result each time."""
    raises = not torch._C._get_deterministic_algorithms_warn_only()
    words = (
        f"{kernel} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    )
    words += (
        ")'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, "
        f"if that's acceptable for your application. You can also {_REPORT} for this operation."
        if raises
        else f", warn_only=True)'. You can {_REPORT} for this operation."
    )
    _warn(words, raises=raises)


def _warn(words: str, *, raises: bool) -> None:
    if raises:
        raise RuntimeError(words)
    warnings.warn(words, stacklevel=2)
