"""Rules that torch checks above its dispatcher, in C++ that here sees nothing but CPU tensors: checked in Python.

The words are torch's (aten/src/ATen/native: transformers/attention.cpp, RNN.cpp; the strings of libtorch 2.13).
"""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.nn import functional

from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.quiet import PLAIN, function_modes
from devtrace.runtime.tables import rows_of
from devtrace.runtime.torch_names import take
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.rules import two_devices
from devtrace.simulation.storage_tags import tensors_in
from devtrace.simulation.tensors import device


def install(patches: Patches) -> None:
    """Put each check before the function it belongs to."""
    for owner, name, check in ABOVE:
        patches.wrap(owner, name, partial(_check_first, check))
    patches.wrap(functional, "one_hot", _without_reading, leaves=True)


def _without_reading(one_hot: Call, *args: Any, **kwargs: Any) -> Any:
    """Answer `one_hot` as CUDA does: only the CPU reads two values first, to check the classes."""
    result = None if is_compiling() else _one_hot(*args, **kwargs)
    return one_hot(*args, **kwargs) if result is None else result


def _one_hot(*args: Any, **kwargs: Any) -> torch.Tensor | None:
    """Return what CUDA makes, as ATen/native/Onehot.cpp has it; none for what torch itself answers or refuses."""
    arguments: dict[str, Any] = dict(zip(("input", "num_classes"), args, strict=False)) | kwargs
    data, num_classes = arguments.get("input", 0), arguments.get("num_classes", -1)
    if type(data) not in PLAIN or type(num_classes) is not int or arguments.keys() - {"input", "num_classes"}:
        return None
    if len(arguments) < len(args) + len(kwargs) or _traced_by_jit() is not None or function_modes():
        return None
    if device(data).type != "cuda" or data.dtype is not torch.int64 or not data.numel() or _is_transformed(data):
        return None
    if num_classes < 1 and num_classes != -1:
        raise RuntimeError("num_classes should be positive")
    classes = data.max().item() + 1 if num_classes == -1 else num_classes
    result = torch.zeros((*data.shape, max(0, classes)), dtype=torch.int64, device=device(data))
    try:
        return result.scatter_(-1, data.unsqueeze(-1), 1)
    except RuntimeError:
        return None  # of a class that is none, in torch's words


def _check_first(check: Call, function: Call, *args: Any, **kwargs: Any) -> Any:
    if not DEVICES.are_one:
        check(*args, **kwargs)
    return function(*args, **kwargs)


def same_device(*names: str, words: str) -> Call:
    """A check that the arguments of these names, lists included, are on one device; `_` skips one that may differ."""

    def check(*args: Any, **kwargs: Any) -> None:
        tensors = [arg for name, arg in zip(names, args, strict=False) if name != "_"] if names else args
        devices = [device(t) for t in tensors_in((*tensors, *(kwargs[name] for name in names if name in kwargs)))]
        of_types = ".type}" in words
        differ = (it.type != devices[0].type if of_types else it != devices[0] for it in devices)
        index = next((index for index, differs in enumerate(differ) if differs), 0)
        if index:
            fields = {"first": devices[0], "other": devices[index], "number": index, "each": devices}
            raise RuntimeError(words.format_map({**fields, "name": names[index] if index < len(names) else ""}))

    return check


def sections_on_host(data: torch.Tensor, sections: Any = None, *_: Any, **__: Any) -> None:
    if isinstance(sections, torch.Tensor) and device(sections).type == "cuda":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {device(sections)}"
        )


def recurrent(data: torch.Tensor, second: Any, third: Any, fourth: Any, *_: Any) -> None:
    """`check_attributes`: hidden state and parameters are where the input is; a packed input brings its batch sizes."""
    packed = isinstance(fourth, (list, tuple))
    hidden, parameters = (third, fourth) if packed else (second, third)
    hidden = [hidden] if isinstance(hidden, torch.Tensor) else hidden
    here = device(data)
    for name, tensors in (("hidden", hidden), ("parameter", parameters)):
        for other in map(device, tensors):
            if other != here:
                raise RuntimeError(
                    f"Input and {name} tensors are not at the same device, "
                    f"found input tensor at {here} and {name} tensor at {other}"
                )


def tolerances_of_rank(data: torch.Tensor, atol: Any = None, rtol: Any = None, **kwargs: Any) -> None:
    """`linalg.matrix_rank`: a tolerance without the other is compared with zero first, as by `where`."""
    data, atol, rtol = (kwargs.get(name, value) for name, value in (("A", data), ("atol", atol), ("rtol", rtol)))
    here = device(data)
    for name, tolerance in (("atol", atol), ("rtol", rtol)):
        if isinstance(tolerance, torch.Tensor) and device(tolerance) != here:
            if name == "atol" and rtol is None and tolerance.dim() and here.type == "cuda":
                raise two_devices(here, device(tolerance))
            raise RuntimeError(
                f"torch.linalg.matrix_rank: Expected {name} and input tensors to be on the same device, "
                f"but got {name} on {device(tolerance)} and input on {here}"
            )


def fused_cell(data: torch.Tensor, hidden: Any, ih: torch.Tensor, hh: torch.Tensor, *_: Any) -> None:
    """Refuse as `torch.mm` does: CUDA multiplies data and state first, and a fused kernel adds the biases."""
    if device(data).type == "cuda":
        state = hidden if isinstance(hidden, torch.Tensor) else hidden[0]
        for operand, weight in ((data, ih), (state, hh)):
            if device(operand) != device(weight):
                torch.mm(operand, weight.mT)  # which refuses them


def _comparisons() -> Iterator[tuple[Any, str, Call]]:
    for path, names, words in rows_of("simulation/cuda_checks.tsv"):
        owner, _, name = f"torch.{path}".rpartition(".")
        check = same_device(*names.split(), words=words.replace("{same}", _SAME))
        yield sys.modules[owner], name, check
        if owner == "torch" and name in vars(torch._C.TensorBase):
            yield torch.Tensor, name, check


_SAME = "Expected all tensors to be on the same device, but got"
_traced_by_jit, _is_transformed = torch._C._get_tracing_state, torch._C._functorch.is_functorch_wrapped_tensor
_VF = take("_VF", "checks", instead=torch)
# Module, function, check; those of `cuda_checks.tsv` compare devices alone.
ABOVE: tuple[tuple[Any, str, Call], ...] = (
    *_comparisons(),
    (torch, "tensor_split", sections_on_host),
    (torch.Tensor, "tensor_split", sections_on_host),
    (torch.linalg, "matrix_rank", tolerances_of_rank),
    *((_VF, name, fused_cell) for name in ("lstm_cell", "gru_cell")),
    *((_VF, name, recurrent) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")),
)  # fmt: skip
