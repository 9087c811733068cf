"""Dtypes that CUDA refuses and the CPU computes in: refused on a device as well, in CUDA's words.

`cuda_refusals.tsv` has them by operator. What has none of its own is judged by the operators that it calls.
"""

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch

from devtrace.runtime.tables import rows_of
from devtrace.simulation.storage_tags import FLOATING, HOST, tag_of, tensors_in

Handler = Callable[..., Any]
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)


@functools.cache
def table() -> dict[str, dict[torch.dtype, tuple[str, str]]]:
    """Operator without overload -> dtypes that CUDA refuses: its words, and when."""
    found: dict[str, dict[torch.dtype, tuple[str, str]]] = {}
    for operators, names, words, *condition in rows_of("simulation/cuda_refusals.tsv"):
        for operator in operators.split():
            refused = ((getattr(torch, name), (words, "".join(condition))) for name in names.split())
            found.setdefault(operator, {}).update(refused)
    return found


def refusing(func: Any, handler: Handler) -> Handler:
    """Put the refusals of an operator before what answers it; most have none."""
    schema = func._schema
    refused = table().get(schema.name.removeprefix("aten::").rstrip("_"))
    first = next((at for at, argument in enumerate(schema.arguments) if str(argument.type) == "Tensor"), None)
    if refused is None or first is None:
        return handler
    return functools.partial(_unless_refused, handler, refused, first)


def _unless_refused(
    handler: Handler,
    refused: Mapping[torch.dtype, tuple[str, str]],
    at: int,
    mode: Any,
    func: Any,
    args: Any,
    kwargs: Any,
) -> Any:
    dtype: Any = getattr(args[at], "dtype", None) if at < len(args) else None  # C++ may hand on a number
    words, condition = refused.get(dtype, ("", ""))
    if words and _applies(condition, dtype, func, args, kwargs, at):
        owners = {tag_of(each).owner for each in tensors_in((*args, *kwargs.values()))}
        no_kernel = words == "-" and not owners <= {HOST, FLOATING}
        if no_kernel or (len(owners) == 1 and owners.isdisjoint((HOST, FLOATING))):  # of several, devices come first
            if len(owners) == 1 and not any(spec.alias_info for spec in func._schema.arguments):
                with suppress(NotImplementedError):  # the CPU may refuse the dtype, too
                    handler(mode, func, args, kwargs)  # raises for shapes that do not fit, of which torch speaks first
            _refuse(func, words, args, kwargs)
    return handler(mode, func, args, kwargs)


def _applies(condition: str, dtype: Any, func: Any, args: Any, kwargs: Any, at: int) -> bool:
    """Return whether both matrices have the dtype, or an argument a value that CUDA does not take."""
    if condition == "both":
        return all(getattr(each, "dtype", None) is dtype for each in args[at : at + 2])
    name, _, value = condition.partition("=")
    given = dict(zip((spec.name for spec in func._schema.arguments), args, strict=False)) | kwargs
    if value.startswith("="):
        return bool(given.get(name) == value[1:])
    return not name or given.get(name) != value


def _refuse(func: Any, words: str, args: Any, kwargs: Any) -> None:
    kind = torch._C.TensorBase.type(next(tensors_in(args)))[len("torch.") : -len("Tensor")]
    if words == "-":
        func.redispatch(_CUDA, *args, **kwargs)  # raises: it has no such kernel
    elif " " in words:
        raise RuntimeError(words.format(kind))
    raise NotImplementedError(f""""{words}" not implemented for '{kind}'""")
