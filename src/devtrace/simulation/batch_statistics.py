"""The parts of SyncBatchNorm that torch has for accelerators only, as sums of plain operators.

After aten/src/ATen/native/cuda/Normalization.cuh: statistics are of each channel, the second dimension.
"""

from collections.abc import Callable
from typing import Any, Final

import torch

Tensor = torch.Tensor


def stats(data: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return mean and 1 / deviation of each channel."""
    data = _wide(data)
    return data.mean(_others(data)), (data.var(_others(data), unbiased=False) + eps).rsqrt()


def gather_stats_with_counts(
    data: Tensor, mean: Tensor, invstd: Tensor, running_mean: Any, running_var: Any, momentum: float, eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Join the statistics of all ranks, each with its number of values."""
    weight = counts.to(mean.dtype).view(-1, 1)
    total = weight.sum()
    joint = (mean * weight).sum(0) / total
    squares = (((1 / invstd).square() - eps + (mean - joint).square()) * weight).sum(0)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_((momentum * joint).to(running_mean.dtype))
    if running_var is not None:
        running_var.mul_(1 - momentum).add_((momentum * squares / (total - 1)).to(running_var.dtype))
    return joint, (squares / total + eps).rsqrt()


def gather_stats(
    data: Tensor, mean: Tensor, invstd: Tensor, running_mean: Any, running_var: Any, momentum: float, eps: float,
    count: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Join the statistics of ranks that have as many values each."""
    counts = mean.new_full((len(mean),), count)
    return gather_stats_with_counts(data, mean, invstd, running_mean, running_var, momentum, eps, counts)


def elemt(data: Tensor, weight: Any, bias: Any, mean: Tensor, invstd: Tensor, eps: float) -> Tensor:
    """Normalize."""
    out = (_wide(data) - _spread(mean, data)) * _spread(invstd, data)
    out = out if weight is None else out * _spread(weight, data)
    return (out if bias is None else out + _spread(bias, data)).to(data.dtype)


def backward_reduce(
    grad: Tensor, data: Tensor, mean: Tensor, invstd: Tensor, weight: Any, input_g: bool, weight_g: bool, bias_g: bool
) -> tuple[Any, ...]:
    """Sum the gradient, and the gradient times the distance from the mean."""
    wide = _wide(grad)
    sum_dy = wide.sum(_others(grad))
    sum_dy_xmu = (wide * (_wide(data) - _spread(mean, data))).sum(_others(grad))
    like = sum_dy if weight is None else weight
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        (sum_dy_xmu * invstd).to(like.dtype) if weight_g else None,
        sum_dy.to(like.dtype) if bias_g else None,
    )


def backward_elemt(
    grad: Tensor, data: Tensor, mean: Tensor, invstd: Tensor, weight: Any, sum_dy: Tensor, sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:  # fmt: skip
    """Return the gradient of the input."""
    total = count.sum()
    scale = invstd if weight is None else invstd * weight
    distance = _wide(data) - _spread(mean, data)
    of_variance = distance * _spread(invstd.square() * sum_dy_xmu / total, data)
    return ((_wide(grad) - _spread(sum_dy / total, data) - of_variance) * _spread(scale, data)).to(data.dtype)


def _wide(data: Tensor) -> Tensor:
    return data.float() if data.dtype in (torch.float16, torch.bfloat16) else data


def _others(data: Tensor) -> list[int]:
    return [dim for dim in range(data.dim()) if dim != 1]


def _spread(values: Tensor, data: Tensor) -> Tensor:
    """Give values of channels the shape of what they are applied to."""
    return values.view(1, -1, *[1] * (data.dim() - 2))


_ALL: Final = (stats, gather_stats, gather_stats_with_counts, elemt, backward_reduce, backward_elemt)
BY_OPERATOR: Final[dict[str, Callable[..., Any]]] = {f"batch_norm_{each.__name__}": each for each in _ALL}
