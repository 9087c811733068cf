"""Rules that torch checks above its dispatcher, in C++ that here sees nothing but CPU tensors: checked in Python.

The words are torch's (aten/src/ATen/native: transformers/attention.cpp, RNN.cpp; the strings of libtorch 2.13).
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from devtrace.runtime.patches import Patches
from devtrace.runtime.tables import rows_of
from devtrace.runtime.torch_names import take
from devtrace.simulation.storage_tags import MEMORY, tensors_in
from devtrace.simulation.tensors import device

Call = Callable[..., Any]


def install(patches: Patches) -> None:
    """Put each check before the function it belongs to."""
    for owner, name, check in ABOVE:
        patches.set(owner, name, _after(check, getattr(owner, name)))


def _after(check: Call, function: Call) -> Call:
    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not MEMORY.is_one:
            check(*args, **kwargs)
        return function(*args, **kwargs)

    return checked


def same_device(*names: str, words: str) -> Call:
    """A check that the tensors given first, lists included, are on one device."""

    def check(*args: Any, **kwargs: Any) -> None:
        given = args[: len(names)] if names else args
        each = [device(tensor) for tensor in tensors_in((*given, *(kwargs[name] for name in names if name in kwargs)))]
        number = next((at for at, other in enumerate(each) if other != each[0]), 0)
        if number:
            raise RuntimeError(words.format(first=each[0], other=each[number], number=number, each=each))

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
    _same_device(data, "hidden", hidden)
    _same_device(data, "parameter", parameters)


def windowed(data: torch.Tensor, n_fft: int, hop: Any = None, length: Any = None, window: Any = None, *_: Any) -> None:
    """A window that is shorter than a frame is padded on the input's device, so torch asks before that."""
    if isinstance(window, torch.Tensor) and device(window) != device(data):
        raise RuntimeError(
            "stft input and window must be on the same device but got self on "
            f"{device(data)} and window on {device(window)}"
        )


def _same_device(data: torch.Tensor, name: str, tensors: Iterable[torch.Tensor]) -> None:
    here = device(data)
    for tensor in tensors:
        if device(tensor) != here:
            raise RuntimeError(
                f"Input and {name} tensors are not at the same device, "
                f"found input tensor at {here} and {name} tensor at {device(tensor)}"
            )


def _comparisons() -> Iterator[tuple[Any, str, Call]]:
    for path, names, words in rows_of("simulation/cuda_checks.tsv"):
        owner, _, name = f"torch.{path}".rpartition(".")
        yield sys.modules[owner], name, same_device(*names.split(), words=words)


_VF = take("_VF", "checks", instead=torch)
# Module, function, check; those of `cuda_checks.tsv` compare devices alone.
ABOVE: tuple[tuple[Any, str, Call], ...] = (
    *_comparisons(),
    (torch, "tensor_split", sections_on_host),
    (torch.Tensor, "tensor_split", sections_on_host),
    (_VF, "stft", windowed),
    *((_VF, name, recurrent) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")),
)  # fmt: skip
