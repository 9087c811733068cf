"""torch's words for dtypes, as `vocabulary` has those for devices: what casts, what takes one dtype alone."""

from collections.abc import Mapping
from typing import Final

CASTS: Final[Mapping[str, str]] = {
    "bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "cdouble": "complex128", "cfloat": "complex64",
    "char": "int8", "double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64",
    "short": "int16",
}  # fmt: skip
"""Methods that cast, with the dtype that they cast to; modules have those for floating-point numbers."""
DEFAULT: Final = "float32"
REAL: Final[Mapping[str, str]] = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""Dtype of the real parts of a complex one: `model.double()` casts floating-point tensors, and no complex ones."""
NORMS: Final = tuple(
    f"aten.{name}" for name in ("native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm")
)
"""Ops whose result has the dtype of their first input, whatever their weights have."""

OF_WEIGHTS: Final = "module"
"""Op of a module that was read: its result has the dtype of its weights."""
TAKES_ONE: Final = tuple(
    f"aten.{name}."
    for name in (
        "addmm", "mm", "bmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "vdot", "convolution",
        "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "index_add", "index_add_", "index_copy",
        "index_copy_", "masked_scatter", "masked_scatter_", "lerp", "lerp_", "grid_sampler_2d", "cdist", "linalg_cross",
    )
)  # fmt: skip
"""Ops that take one dtype alone; most others take several and give the larger."""
ASSIGNS: Final = ("aten.scatter", "aten.index_", "aten.masked_scatter", "Tensor.__setitem__")
"""Ops of which the first tensor and the last have to be of one dtype; those between are indexes or masks."""
COLLECTS: Final = ("aten.stack", "aten.cat", "aten.index.", "aten.index_select")
"""Ops that give values of theirs as they are."""
GIVES_BOOL: Final = frozenset((
    "all", "any", "compare", "eq", "ge", "gt", "isclose", "isfinite", "isinf", "isnan", "le", "logical_and",
    "logical_not", "logical_or", "logical_xor", "lt", "ne",
))  # fmt: skip
GIVES_INDEXES: Final = frozenset((
    "argmax", "argmin", "argsort", "bincount", "bucketize", "count_nonzero", "multinomial", "nonzero", "one_hot",
    "randint", "randperm", "searchsorted", "tril_indices", "triu_indices",
))  # fmt: skip
GIVES_COMPLEX: Final = frozenset(("complex", "fft", "ifft", "polar", "rfft", "stft", "view_as_complex"))
GIVES_REAL: Final = frozenset(("abs", "angle", "hfft", "imag", "irfft", "istft", "real", "view_as_real"))
"""Ops whose result has complex or real numbers, of the precision of their input; so those in 2 or n dimensions."""
COMPUTES_FLOATS: Final = frozenset((
    "cos", "div", "exp", "log", "log2", "log_softmax", "mean", "reciprocal", "rsqrt", "sigmoid", "sin", "softmax",
    "sqrt", "std", "tanh", "true_divide", "var",
))  # fmt: skip
"""Ops that give the default dtype of whole numbers."""
CAST_BY_AUTOCAST: Final = tuple(
    f"aten.{name}."
    for name in ("addmm", "mm", "bmm", "baddbmm", "addbmm", "convolution", "linear", "matmul", "_convolution")
)
"""Ops whose inputs autocast casts, on each kind of device."""
PRODUCTS: Final = frozenset(("einsum", "linear", "matmul"))
FLOATS_ONLY: Final = frozenset(("linspace", "logspace", "normal", "rand", "rand_like", "randn", "randn_like"))
"""Factories that make no whole numbers."""
FILLED_BY: Final = ("arange", "full")
"""Factories whose numbers say the dtype."""
LED_BY_FIRST: Final = frozenset((
    "batch_norm", "dropout", "gather", "group_norm", "index", "index_select", "interpolate", "layer_norm",
    "masked_fill", "pad", "rms_norm", "select", "slice", "take",
))  # fmt: skip
"""Functions whose result has the dtype of their first tensor."""
FROM_ARRAYS: Final = frozenset(("tensor", "as_tensor", "asarray"))
"""Factories that take over an array's dtype."""
TAKES_NUMBER: Final = ("masked_fill", "masked_fill_", "fill_", "full", "full_like", "new_full", "pad")
"""Functions with a number that has to fit the dtype."""
NUMBERS: Final = ("value", "fill_value")
"""Keywords of theirs for it."""
GIVES_DTYPES: Final = ("state_dict", "load", "copy_", "autocast")
"""Calls from which on a dtype may be meant."""


def is_cast(method: str) -> bool:
    """Return whether a method of tensors and modules casts: `to`, `type`, `type_as`, and one for each common dtype."""
    return method in ("to", "type", "type_as") or method in CASTS


def is_floating(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))
