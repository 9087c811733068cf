"""What torch computes on CUDA only: LU without pivoting, products with weights of four bits or in another dtype, sums.

After aten/src/ATen/native/BatchLinearAlgebra.cpp, ReduceOps.cpp and cuda/int4mm.cu. Packed weights have CUDA's
dtype and shape; the order of their bits is ours, which only torch's own two operators read.
"""

from collections.abc import Callable
from typing import Any, Final

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def lu_factor_ex(data: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Eliminate column by column; a zero on the diagonal divides nothing, and its number is the matrix' info."""
    if pivot or data.dim() < 2:
        return aten.linalg_lu_factor_ex(data, pivot=pivot, check_errors=check_errors)  # type: ignore[no-any-return]
    factors, steps = data.clone(), min(data.shape[-2:])
    info = data.new_zeros(data.shape[:-2], dtype=torch.int32)
    for step in range(steps):
        corner = factors[..., step, step]
        info = torch.where((info == 0) & (corner == 0), step + 1, info)
        below = factors[..., step + 1 :, step]
        below /= torch.where(corner == 0, 1, corner).unsqueeze(-1)
        factors[..., step + 1 :, step + 1 :] -= below.unsqueeze(-1) * factors[..., step, step + 1 :].unsqueeze(-2)
    if check_errors:
        aten._linalg_check_errors(info, "torch.linalg.lu_factor_ex", is_matrix=data.dim() == 2)
    pivots = torch.arange(1, steps + 1, dtype=torch.int32).expand(*data.shape[:-2], steps).contiguous()
    return factors, pivots, info.to(torch.int32)


def lu(data: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return no permutation, and both triangles."""
    if pivot or data.dim() < 2:
        return aten.linalg_lu(data, pivot=pivot)  # type: ignore[no-any-return]
    factors, pivots, _ = lu_factor_ex(data, pivot=False)
    _, lower, upper = torch.lu_unpack(factors, pivots, unpack_pivots=False)
    return data.new_empty(0), lower, upper


def nansum(data: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum complex numbers, those that are none left out."""
    if not data.is_complex():
        return aten.nansum(data, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]
    kept = torch.where(data.isnan(), 0, data)
    if torch.complex32 not in (data.dtype, dtype):
        return kept.sum(dim, keepdim, dtype=dtype)
    return kept.to(torch.complex64).sum(dim, keepdim).to(dtype or data.dtype)  # the CPU adds no halves up


def pack_int4(weight: Tensor, tiles: int) -> Tensor:
    """Give bytes, each with two numbers of a row, the shape of CUDA's tiles."""
    rows, pairs = weight.shape
    shape = (rows // 8, pairs * 2 // (tiles * 16), 32, tiles // 2)
    return weight.contiguous().view(-1).view(torch.int32).view(shape).clone()


def multiply_int4(data: Tensor, packed: Tensor, group: int, scales_and_zeros: Tensor) -> Tensor:
    """Multiply as the CPU does, whose packing takes a number for each weight."""
    pairs = packed.contiguous().view(-1).view(torch.uint8).view(packed.shape[0] * 8, -1)
    numbers = torch.stack((pairs >> 4, pairs & 15), -1).flatten(1).to(torch.int32)
    weight = aten._convert_weight_to_int4pack_for_cpu(numbers, packed.shape[-1] * 2)
    return aten._weight_int4pack_mm_for_cpu(data, weight, group, scales_and_zeros)  # type: ignore[no-any-return]


IN_A_DTYPE: Final = ("dtype", "dtype_out")  # overloads of products, `torch.mm(a, b, out_dtype=torch.float32)`


def product_in_a_dtype(func: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return what multiplies in the dtype of the result: that of the matrices or, of halves, float32."""
    names = [argument.name for argument in func._schema.arguments]
    at = names.index("out_dtype") if "out_dtype" in names else 0
    if not at or {each.dtype for each in args[at - 2 : at]} - {torch.float16, torch.bfloat16, args[at]}:
        return None
    if args[at] not in (torch.float32, args[at - 1].dtype):
        return None

    def multiply(*args: Any, **kwargs: Any) -> Any:
        return getattr(aten, func._opname)(*(each.to(args[at]) for each in args[:at]), **kwargs)

    return multiply


BY_OPERATOR: Final[dict[str, Callable[..., Any]]] = {
    "linalg_lu_factor_ex": lu_factor_ex,
    "linalg_lu": lu,
    "nansum": nansum,
    "_convert_weight_to_int4pack": pack_int4,
    "_weight_int4pack_mm": multiply_int4,
}
