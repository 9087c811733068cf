"""Numbers where an operator wants a tensor: torch hands a mode the number that a traced script keeps as a tensor."""

import operator
from typing import Any, Final

import torch

_DTYPES: Final = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
_REFUSED: Final = "type 'Tensor'"


def as_tensors(error: BaseException, func: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the arguments with tensors for numbers, if that is what the operator refused; else None."""
    if type(error) is not RuntimeError or _REFUSED not in str(error):
        return None
    declared = func._schema.arguments
    made = [
        torch.tensor(arg, dtype=_DTYPES[type(arg)]) if type(arg) in _DTYPES and str(each.type) == "Tensor" else arg
        for each, arg in zip(declared, args, strict=False)
    ]
    return None if all(map(operator.is_, made, args)) else tuple(made)
