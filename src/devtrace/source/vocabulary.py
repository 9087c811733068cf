"""torch's words: what its functions and methods do with a tensor, and with the device that it is on. The one table.

    "zeros" in MAKES; is_move("cuda")

After `import torch as T` the full name of `T.zeros` is torch.zeros.

Names stand here without their module. Where torch's schemas tell (views, factories, copies), a test compares with them.
"""

import ast
import re
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, Final

from devtrace.source.element_types import CASTS
from devtrace.source.matching import called_name, chain, only, variable
from devtrace.source.parsing import Source
from devtrace.source.saved_files import files_in_use
from devtrace.source.stand_ins import Builtin

HOST: Final = "cpu"
_KINDS: Final = (HOST, "cuda", "meta", "mps", "xpu", "hpu", "npu", "xla")
_WITHOUT_INDEX: Final = (HOST, "meta", "mps")

# Functions that give a tensor.

_WINDOWS: Final = ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")
_FILLED: Final = (
    "arange", "empty", "empty_permuted", "empty_strided", "eye", "from_file", "full", "linspace", "logspace", "ones",
    "scalar_tensor", "tril_indices", "triu_indices", "zeros",
)  # fmt: skip
_RANDOM: Final = ("normal", "rand", "randint", "randn", "randperm")
_SPARSE: Final = tuple(f"sparse_{form}_tensor" for form in ("bsc", "bsr", "compressed", "coo", "csc", "csr"))
OF_DATA: Final = frozenset(("as_tensor", "asarray"))
"""Factories that leave a tensor or an array on the device where it is."""
LIKE_DATA: Final = frozenset(("rand", "randn", "normal", "tensor", *OF_DATA))
"""Factories whose result stands for data where no module runs: that is cast, not made otherwise."""
MAKES: Final = frozenset((*_WINDOWS, *_FILLED, *_RANDOM, *_SPARSE, *OF_DATA, "tensor"))
"""Factories: they take a device, else make on the default device."""
MAKES_ON_HOST: Final = frozenset(("from_numpy", "frombuffer", "from_dlpack"))
"""They take over memory of the host, and no device."""
OF_VALUES: Final = frozenset((*OF_DATA, *MAKES_ON_HOST, "fill_", "new_tensor", "scalar_tensor", "tensor"))
"""They put the values that they take into a tensor."""
JOINS: Final = frozenset((
    "cat", "column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack", "stack", "vstack",
))  # fmt: skip
"""They make one tensor of several, which they take as a list."""
TAKES_ITEMS: Final = JOINS | {"pad_sequence", "pack_sequence"}
"""What they take first is a list of tensors."""
OPERATORS: Final = {
    "Mult": "mul", "MatMult": "matmul", "Mod": "remainder", "FloorDiv": "floor_divide", "BitAnd": "bitwise_and",
    "BitOr": "bitwise_or", "BitXor": "bitwise_xor", "LShift": "bitwise_left_shift", "RShift": "bitwise_right_shift",
    "USub": "neg", "UAdd": "positive", "Invert": "bitwise_not", "Not": "logical_not", "NotEq": "ne",
    "LtE": "le", "GtE": "ge",
}  # fmt: skip
"""Methods of Python's operators; of others it is the operator's name in small letters."""

# Methods.

VIEWS: Final = frozenset((
    "adjoint", "alias", "as_strided", "broadcast_to", "chunk", "conj", "detach", "diagonal", "dsplit", "expand",
    "expand_as", "flatten", "hsplit", "moveaxis", "movedim", "narrow", "permute", "positive", "ravel", "reshape",
    "reshape_as", "resolve_conj", "resolve_neg", "select", "slice", "split", "split_with_sizes", "squeeze", "swapaxes",
    "swapdims", "t", "tensor_split", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view", "view_as",
    "view_as_complex", "view_as_real", "vsplit",
))  # fmt: skip
"""What they give may share the memory of what they are called on."""
COPIES: Final = frozenset(("clone", "contiguous"))
"""They give the same values on the same device."""
READS: Final = frozenset(("item", "numpy", "tolist"))
"""They bring values to Python: the host waits for the device."""
GIVES_NUMBERS: Final = frozenset(("float", "int", "item"))
"""They give one number of Python's."""
DESCRIBES: Final = frozenset((
    "backward", "data_ptr", "dim", "element_size", "get_device", "is_contiguous", "nelement", "numel", "size",
    "storage_offset", "stride",
))  # fmt: skip
"""They give no tensor and read no value."""
FACTS: Final = frozenset(("device", "dtype", "is_cuda", "is_leaf", "ndim", "requires_grad", "shape"))
"""Attributes that tell about a tensor."""
PARTS: Final = frozenset(("H", "T", "data", "grad", "imag", "mH", "mT", "real"))
"""Attributes that are a tensor on the device of theirs."""
OF_MODULES: Final = frozenset(("buffers", "named_buffers", "named_parameters", "parameters", "state_dict"))
"""A module's methods that give its tensors."""
_OF_TENSORS_ALONE: Final = (VIEWS | COPIES | READS | DESCRIBES | FACTS | PARTS) - {"imag", "real", "split"}
_GIVES_ITSELF: Final = frozenset((*CASTS, "type", "eval", "requires_grad_", "train"))

# Values that are drawn, picked or counted.

DRAWS: Final = frozenset((
    "bernoulli", "bernoulli_", "multinomial", "normal", "normal_", "poisson", "randint", "randperm",
))  # fmt: skip
FILLS: Final = frozenset((
    "bernoulli_", "cauchy_", "exponential_", "fill_", "geometric_", "log_normal_", "normal_", "random_", "uniform_",
    "zero_",
))  # fmt: skip
"""They give all of a tensor's values anew."""
PICKS: Final = frozenset(("argmax", "argmin"))
"""They give indexes."""
PICKS_SECOND: Final = frozenset(("max", "min", "sort", "topk"))
"""They give indexes as their second output."""
COUNTS: Final = (
    "nonzero", "argwhere", "masked_select", "unique", "bincount", "repeat_interleave", "_nested_tensor_size",
)  # fmt: skip
"""The size of what they give is in the values: the host waits for it."""
OF_BATCHES: Final = ("bmm", "baddbmm", "einsum", "matmul")
"""They give products of all pairs, as attention does."""
MIXES: Final = ("add", "sub", "mul", "lerp", "where", "addcmul", "addcdiv")
"""They add to a tensor, or weigh it, element by element."""
BOUNDS: Final = ("clamp", "clamp_max", "clamp_min")
"""They keep a tensor within bounds."""
FACTORS: Final = ("alpha", "value")
"""Their arguments that are numbers of Python's."""
IGNORES_LABELS: Final = frozenset(("nll_loss_forward", "nll_loss2d_forward"))
"""Losses that leave out what has a label of its own for that."""
AVERAGES: Final = frozenset((
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "l1_loss", "mean", "mse_loss",
    "smooth_l1_loss",
))  # fmt: skip
"""They may give the average of what they take."""
CHECKS_FLOATS: Final = frozenset(("isfinite", "isinf", "isnan", "isneginf", "isposinf"))
"""They ask for what a computation never gives, unless something is wrong with it."""

BY_NUMBER: Final = frozenset(("cuda", "xpu", "set_device", "device", "to"))
"""Functions that take a device of the accelerator by its number alone."""
_OF_ACCELERATORS: Final = ("torch.accelerator.", "torch.cuda.", "torch.xpu.")
DEVICE_LISTS: Final = ("device_ids", "DataParallel", "DistributedDataParallel")
"""An argument that is a list of devices, and modules whose second argument is one."""

# Functions of Python, and methods of its containers.

READ_OF_CLASSES: Final = frozenset(("__call__", "__dataclass_params__", "__get__", "__getitem__", "__init__"))
"""Methods that Python calls by itself, and that are read in the source of a class; the options of a dataclass."""
EXTENDS: Final = frozenset(("append", "extend", "insert"))
ADDS_AN_ITEM: Final = frozenset(("add", "append", "appendleft", "insert"))
"""The item is what they take last."""
ADDS: Final = EXTENDS | ADDS_AN_ITEM | {"put", "put_nowait", "setdefault", "update"}
REPLACES: Final = ("replace", "_replace")
"""They make another dataclass object, or named tuple, with some fields changed."""
TAKES_OUT: Final = frozenset(("pop", "popleft", "popitem", "clear", "remove"))
TAKES_VALUES: Final = frozenset((
    "bool", "complex", "enumerate", "float", "format", "int", "len", "list", "max", "min", "pow", "print", "range",
    "repr", "round", "sorted", "str", "sum", "tuple",
))  # fmt: skip
"""Built-in functions that read a tensor's values, or its length, on the host."""
_USUAL: Final = {"F": "torch.nn.functional", "math": "math", "nn": "torch.nn", "np": "numpy", "th": "torch"}
"""Names of modules that a cell may have from another cell."""


def kinds() -> tuple[str, ...]:
    """Return all kinds of devices by name. A backend may be registered at any time."""
    if (case := files_in_use()) is not None:
        return case.kinds
    torch: Any = sys.modules.get("torch")
    return (*_KINDS, getattr(torch._C, "_get_privateuse1_backend_name", str)()) if torch is not None else _KINDS


def in_full(device: str) -> str:
    """Return a device with its index: `cuda` is the first one."""
    return device if not device or ":" in device or device in _WITHOUT_INDEX else f"{device}:0"


def devices_named(text: str) -> list[str]:
    """Return the devices that a message of torch's names, in its order; of a tensor type (`torch.FloatTensor`) too."""
    kind = "|".join(map(re.escape, kinds()))
    pattern = rf"(?<!Tensor\.)\b((?:{kind})(?::\d+)?)\b|torch\.(?:({kind})\.)?\w+Tensor"
    devices = [in_full(match[1] or match[2] or HOST) for match in re.finditer(pattern, text)]
    return list(dict.fromkeys(devices))


def takes_number(name: str, full: str) -> bool:
    """Return whether a function's first argument may be a device's number: `x.cuda(1)`, `torch.cuda.device(0)`."""
    return name in BY_NUMBER or full.startswith(_OF_ACCELERATORS)


def is_move(method: str) -> bool:
    """Return whether a method of tensors and modules moves: `to`, `type_as`, and one for each kind of device."""
    return method in ("to", "type_as") or method in kinds()


def hands_on(call: ast.AST, of_dtypes: bool) -> bool:
    """Return whether code gives a tensor that was there, unchanged: `rows.pop()`, `x.clone()`; of dtypes `x.to(d)`."""
    names = [*map(called_name, only(ast.Call, chain(call)))]
    return names != [] and all(name in VIEWS | COPIES | TAKES_OUT or (of_dtypes and is_move(name)) for name in names)


def is_copied_by(method: str) -> bool:
    """Return whether a method may copy its tensor unchanged, to a device or to Python."""
    return is_move(method) or method in READS or method == "type"


def is_factory(name: str) -> bool:
    """Return whether a function or method makes a tensor without reading the values of others."""
    return name in MAKES or name in MAKES_ON_HOST or name.partition("_")[0] == "new" or name.endswith("_like")


def is_mixing(name: str) -> bool:
    """Return whether a function adds to a tensor, or weighs it: `add_`."""
    return name.removesuffix("_") in MIXES


def gives_itself(method: str) -> bool:
    """Return whether a module's method returns the module."""
    return method in _GIVES_ITSELF or is_move(method)


def leaves_device(name: str) -> bool:
    """Return whether the result is not a tensor on the input's device: `x.to(d)`, `len(x)`."""
    return (
        is_move(name)
        or name in READS
        or name in DESCRIBES
        or name in TAKES_VALUES
        or name.startswith(("new_", "is_"))
        or name in ("isinstance", "to_device")
    )


def changes_itself(method: str) -> bool:
    """Return whether a method works in place: `add_`."""
    return method.endswith("_") and not method.endswith("__")


def is_of_tensors_alone(name: str) -> bool:
    """Return whether tensors have an attribute that `torch.device`, texts and numbers have not: `detach`."""
    return name in _OF_TENSORS_ALONE or is_move(name) or changes_itself(name)


def torch_name(value: object) -> str:
    """Return the name of a function of torch's own; empty for any other object."""
    if type(value) is Builtin:
        return str(value)
    if type(value) is BuiltinFunctionType:
        owner = value.__self__  # a tensor, torch's own module, or nothing
        module = owner.__name__ if type(owner) is ModuleType else value.__module__ or type(owner).__module__
        return value.__name__ if _is_of_torch(str(module)) else ""
    if type(value) is MethodDescriptorType:
        return value.__name__ if _is_of_torch(value.__objclass__.__module__) else ""
    return value.__name__ if type(value) is FunctionType and _is_of_torch(str(value.__module__)) else ""


def _is_of_torch(module: str) -> bool:
    return module.partition(".")[0] == "torch"


def full_name(node: ast.AST, source: Source, names: Mapping[str, Any] | None = None) -> str:
    """Return the full name of a module's member in code, as "torch.zeros" for `T.zeros`; else empty.

    Modules are looked up in `names`, the variables of the code, then in the source's imports, and at last by custom:
    `np` is numpy.
    """
    *steps, root = chain(node)
    parts = [step.attr for step in only(ast.Attribute, steps)]
    is_path = variable(root) and len(parts) == len(steps)
    full_root = _full_root(variable(root), source, names or {}) if is_path else ""
    return ".".join([full_root, *reversed(parts)]) if full_root else ""


def _full_root(name: str, source: Source, names: Mapping[str, Any]) -> str:
    value = names.get(name)
    if type(value) is ModuleType:
        return value.__name__
    if name in names:
        return f"torch.{torch_name(value)}" if torch_name(value) else ""
    return source.imports.get(name) or _USUAL.get(name, name if name in ("numpy", "torch") else "")


def package(node: ast.AST, source: Source, names: Mapping[str, Any] | None = None) -> str:
    """Return the package of a name in code: "torch" for `F.relu`."""
    return full_name(node, source, names).partition(".")[0]
