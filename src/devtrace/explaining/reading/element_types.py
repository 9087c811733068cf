"""Dtypes of results that were read from the source, by torch's own rules; None where an input is unknown."""

import ast
from functools import reduce
from typing import Any, Final

import torch

from devtrace.explaining.reading.values import KnownValue, TensorValue, Value
from devtrace.recording.columns.operator_info import COMPUTE
from devtrace.source import element_types as names
from devtrace.source.matching import nodes_of
from devtrace.source.parsing import Source
from devtrace.source.vocabulary import COPIES, LIKE_DATA, MAKES, PARTS, VIEWS

OF_PYTHON: Final = {"float": torch.float64, "int": torch.int64, "bool": torch.bool, "complex": torch.complex128}
"""Dtypes that torch takes Python's types for: builtins are in no scope."""


def dtype_given_by(value: Value | None) -> torch.dtype | None:
    """Return the dtype that a value is or has."""
    if isinstance(value, TensorValue):
        return value.dtype
    return value.value if isinstance(value, KnownValue) and isinstance(value.value, torch.dtype) else None


def differs(tensor: TensorValue, device: str, dtype: torch.dtype | None) -> bool:
    """Return whether a tensor read from the source is on another device, or of another dtype if one is given."""
    return tensor.device != device or (dtype is not None and tensor.dtype not in (None, dtype))


def may_be(tensor: TensorValue, device: str) -> bool:
    """Return whether a tensor may be one with another dtype: a computed one on that device, such as a loss."""
    is_computed = tensor.op is not None and tensor.op.kind == COMPUTE and bool(tensor.op.inputs)
    return is_computed and tensor.device == device


def of_result(name: str, inputs: list[TensorValue], node: ast.AST, source: Source) -> torch.dtype | None:
    """Return the dtype of an op's result; None where an input or a cast by autocast is unknown."""
    short = name.removeprefix("aten.").removeprefix("Tensor.").partition(".")[0]
    plain = short.rstrip("_")
    if plain in names.GIVES_BOOL:
        return torch.bool
    if plain in names.GIVES_INDEXES:
        return torch.int64
    if (part := plain.removeprefix("fft_").rstrip("2n")) in names.GIVES_COMPLEX | names.GIVES_REAL:
        kind = inputs[0].dtype or torch.int64
        is_known = kind.is_floating_point or kind.is_complex
        return (kind.to_complex() if part in names.GIVES_COMPLEX else kind.to_real()) if is_known else None
    if plain in names.LED_BY_FIRST or plain in VIEWS or plain in COPIES or plain in PARTS or short != plain:  # `add_`
        return inputs[0].dtype
    known = [tensor.dtype for tensor in inputs if tensor.dtype is not None]
    takes_one = plain in names.PRODUCTS or f"aten.{plain}." in names.TAKES_ONE
    if len(known) < len(inputs) or (takes_one and has_autocast(source)):
        return None
    large = [tensor.dtype for tensor in inputs if tensor.dims > 0 and tensor.dtype is not None]
    kind = reduce(torch.promote_types, large or known)  # a number without dimensions promotes to its kind alone
    if kind.is_floating_point or kind.is_complex:
        return kind
    if plain in names.COMPUTES_FLOATS:
        return torch.get_default_dtype()
    return None if any(type(constant.value) is float for constant in nodes_of(ast.Constant, node)) else kind


def has_autocast(source: Source) -> bool:
    return "autocast" in source.text


def of_module(module: Any, weights_dtype: torch.dtype, inputs: list[TensorValue], source: Source) -> torch.dtype | None:
    """Return the dtype of a torch module's output; None if autocast or whole-number weights leave it open."""
    if has_autocast(source):
        return None
    is_norm = "Norm" in type(module).__name__ and bool(inputs)  # a norm keeps its input's dtype
    return inputs[0].dtype if is_norm else weights_dtype if weights_dtype.is_floating_point else None


def of_factory(name: str, arguments: list[ast.expr], values: list[Value | None], source: Source) -> torch.dtype | None:
    """Return the dtype of a factory's result without `dtype=`; None where the program sets the default for a while."""
    if name in names.GIVES_INDEXES:
        return torch.int64
    if name in (*names.FILLED_BY, "tensor") or "sparse" in name or name in LIKE_DATA - {"rand", "randn"}:
        return _of_numbers(name, arguments, values)
    is_set_back = "set_default_dtype" in source.text and torch.get_default_dtype() == torch.float32
    return torch.get_default_dtype() if name in MAKES and not is_set_back else None


def _of_numbers(name: str, arguments: list[ast.expr], values: list[Value | None]) -> torch.dtype | None:
    """Return the dtype that numbers have as a tensor; that of an array or a tensor, if it is one."""
    pairs = list(zip(arguments, values, strict=False))
    place = 1 if name in ("full", "sparse_coo_tensor") else 2 if "sparse" in name else 0
    data = pairs if name == "arange" else pairs[place : place + 1]
    for _, value in data:
        if isinstance(value, TensorValue):
            return value.dtype
        if isinstance(value, KnownValue) and hasattr(type(value.value), "__array_interface__"):
            return getattr(torch, str(getattr(value.value, "dtype", "")), None)
    kinds = [_type_of_numbers(*pair) for pair in data]
    if any(kind is float for kind in kinds):
        return torch.get_default_dtype()
    if not kinds or None in kinds:
        return None
    return torch.bool if all(kind is bool for kind in kinds) else torch.int64


def _type_of_numbers(node: ast.expr, value: Value | None) -> type | None:
    """Return the type of a number in code, or of the numbers in a list: `float` for `[1, 2.5]`."""
    if isinstance(value, KnownValue) and type(value.value) in (int, float, bool):
        return type(value.value)
    try:
        listed: Any = ast.literal_eval(node)
    except (TypeError, ValueError):
        return None
    while type(listed) in (list, tuple) and listed:
        listed = next((item for item in listed if type(item) is float), listed[0])
    return type(listed) if type(listed) in (int, float, bool) else None


def cast_to(name: str, arguments: list[Value | None]) -> torch.dtype | None:
    """Return the dtype that a method casts to, by its name (`half`) or by an argument; None for one that only moves."""
    return getattr(torch, names.CASTS.get(name, ""), None) or next(filter(None, map(dtype_given_by, arguments)), None)
