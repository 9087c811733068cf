"""What torch computes on CUDA only: products in another dtype, and the parts of SyncBatchNorm.

The statistics of these are of each channel, the second dimension. After aten/src/ATen/native/cuda/Normalization.cuh.
"""

from collections.abc import Callable
from typing import Any, Final

import torch

Tensor = torch.Tensor
aten = torch.ops.aten
IN_A_DTYPE: Final = ("dtype", "dtype_out")  # overloads of products, `torch.mm(a, b, out_dtype=torch.float32)`


def product_in_a_dtype(func: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return what multiplies two matrices cast to `out_dtype`; None for dtypes that CUDA refuses."""
    names = [argument.name for argument in func._schema.arguments]
    place = names.index("out_dtype") if "out_dtype" in names else 0
    if not place or {tensor.dtype for tensor in args[place - 2 : place]} - {torch.float16, torch.bfloat16, args[place]}:
        return None
    if args[place] not in (torch.float32, args[place - 1].dtype):
        return None

    def multiply(*args: Any, **kwargs: Any) -> Any:
        return getattr(aten, func._opname)(*(tensor.to(args[place]) for tensor in args[:place]), **kwargs)

    return multiply


def stats(data: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return mean and 1 / deviation of each channel."""
    data = _wide(data)
    return data.mean(_dims_but_channels(data)), (data.var(_dims_but_channels(data), unbiased=False) + eps).rsqrt()


def gather_stats(
    data: Tensor, mean: Tensor, invstd: Tensor, running_mean: Any, running_var: Any, momentum: float, eps: float,
    counts: Tensor | int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Join the statistics of all ranks, each with its number of values, or with the same."""
    weight = torch.as_tensor(counts, device=mean.device).to(mean.dtype).expand(len(mean)).view(-1, 1)
    total = weight.sum()
    joint = (mean * weight).sum(0) / total
    squares = (((1 / invstd).square() - eps + (mean - joint).square()) * weight).sum(0)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_((momentum * joint).to(running_mean.dtype))
    if running_var is not None:
        running_var.mul_(1 - momentum).add_((momentum * squares / (total - 1)).to(running_var.dtype))
    return joint, (squares / total + eps).rsqrt()


def elemt(data: Tensor, weight: Any, bias: Any, mean: Tensor, invstd: Tensor, eps: float) -> Tensor:
    """Normalize each channel, then scale and shift it."""
    out = (_wide(data) - _per_channel(mean, data)) * _per_channel(invstd, data)
    out = out if weight is None else out * _per_channel(weight, data)
    return (out if bias is None else out + _per_channel(bias, data)).to(data.dtype)


def backward_reduce(
    grad: Tensor, data: Tensor, mean: Tensor, invstd: Tensor, weight: Any, input_g: bool, weight_g: bool, bias_g: bool
) -> tuple[Any, ...]:
    """Sum the gradient, and the gradient times the distance from the mean."""
    wide = _wide(grad)
    sum_dy = wide.sum(_dims_but_channels(grad))
    sum_dy_xmu = (wide * (_wide(data) - _per_channel(mean, data))).sum(_dims_but_channels(grad))
    like = sum_dy if weight is None else weight
    results = sum_dy, sum_dy_xmu, (sum_dy_xmu * invstd).to(like.dtype), sum_dy.to(like.dtype)
    requested = input_g, input_g, weight_g, bias_g
    return tuple(result if is_requested else None for result, is_requested in zip(results, requested, strict=True))


def backward_elemt(
    grad: Tensor, data: Tensor, mean: Tensor, invstd: Tensor, weight: Any, sum_dy: Tensor, sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:  # fmt: skip
    """Return the gradient of the input."""
    total = count.sum()
    scale = invstd if weight is None else invstd * weight
    distance = _wide(data) - _per_channel(mean, data)
    of_variance = distance * _per_channel(invstd.square() * sum_dy_xmu / total, data)
    return ((_wide(grad) - _per_channel(sum_dy / total, data) - of_variance) * _per_channel(scale, data)).to(data.dtype)


def _wide(data: Tensor) -> Tensor:
    return data.float() if data.dtype in (torch.float16, torch.bfloat16) else data


def _dims_but_channels(data: Tensor) -> list[int]:
    return [dim for dim in range(data.dim()) if dim != 1]


def _per_channel(values: Tensor, data: Tensor) -> Tensor:
    """Give values of channels the shape of what they are applied to."""
    return values.view(1, -1, *[1] * (data.dim() - 2))


_OF_BATCH_NORM: Final = (stats, gather_stats, elemt, backward_reduce, backward_elemt)
BY_OPERATOR: Final[dict[str, Callable[..., Any]]] = {
    **{f"batch_norm_{kernel.__name__}": kernel for kernel in _OF_BATCH_NORM},
    "batch_norm_gather_stats_with_counts": gather_stats,
}
