"""Stand-ins for what a program has from torch: classes whose objects say what those were, and hold none of their data.

A class of the program that inherits from one of torch is one that inherits from its stand-in (`freeze.py`).
"""

from collections.abc import Mapping
from types import CodeType
from typing import Any, Final

TORCHS: Final = "<torch>"
"""File of a stand-in for a class of torch's."""


class Tensor:
    """`_row`: of the trace's tensors, -1 for one that it has not."""

    __slots__ = ("__dict__", "__weakref__", "_device", "_dtype", "_is_leaf", "_needs_gradient", "_row", "_shape")
    _device: str
    _dtype: str
    _is_leaf: bool
    _needs_gradient: bool
    _row: int
    _shape: tuple[int, ...]


class Parameter(Tensor):
    """One that a module registers."""


class Module:
    """A module of torch.nn."""


class Optimizer:
    """An optimizer of torch.optim."""


class HostData:
    """A source of batches: its tensors belong on the CPU."""


class Dataset(HostData):
    pass


class DataLoader(HostData):
    pass


class Sampler(HostData):
    pass


class Named:
    """An object that is known by its name alone."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name


class Device(Named):
    __slots__ = ()


class Generator(Named):
    """A generator of random numbers, by its device."""

    __slots__ = ()


class Dtype(Named):
    __slots__ = ()


class Builtin(Named):
    """A function written in C: `torch.zeros`."""

    __slots__ = ()


class Frame:
    """A frame of an error: its code, its variables and the names of its module."""

    __slots__ = ("f_code", "f_globals", "f_locals")

    def __init__(self, code: CodeType, variables: dict[str, Any], names: dict[str, Any]) -> None:
        self.f_code, self.f_locals, self.f_globals = code, variables, names


OF_TORCH: Final[Mapping[tuple[str, str], type]] = {
    ("torch", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch.nn.modules.module", "Module"): Module,
    ("torch.optim.optimizer", "Optimizer"): Optimizer,
    ("torch.utils.data.dataset", "Dataset"): Dataset,
    ("torch.utils.data.dataloader", "DataLoader"): DataLoader,
    ("torch.utils.data.sampler", "Sampler"): Sampler,
    ("torch._C", "Generator"): Generator,
    ("torch", "device"): Device,
    ("torch", "dtype"): Dtype,
}
"""By the module and the name of torch's class."""
for (_module, _name), _kind in OF_TORCH.items():
    _kind.__module__, _kind.__qualname__ = _module, _name
    _kind.__file__ = TORCHS  # type: ignore[attr-defined]
