"""torch's words for dtypes: methods that cast, and which dtypes compute."""

from collections.abc import Mapping
from typing import Final

CASTS: Final[Mapping[str, str]] = {
    "bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "cdouble": "complex128", "cfloat": "complex64",
    "char": "int8", "double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64",
    "short": "int16",
}  # fmt: skip
"""Methods that cast, with the dtype that they cast to; modules have those for floating-point numbers."""
NORMS: Final = tuple(
    f"aten.{name}" for name in ("native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm")
)
"""Ops whose result has the dtype of their first input, whatever their weights have."""


def is_cast(method: str) -> bool:
    """Return whether a method of tensors and modules casts: `to`, `type`, `type_as`, and one for each common dtype."""
    return method in ("to", "type", "type_as") or method in CASTS


def is_floating(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))
