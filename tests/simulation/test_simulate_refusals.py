"""Dtypes that CUDA refuses are refused on a simulated device, in its words, and those that it alone has are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from devtrace.simulation import refusals, upcast_ops
from folders import TESTS

Call = Callable[[torch.Tensor], object]


pytestmark = pytest.mark.usefixtures("one")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.addmm_(x, x), "\"addmm_cuda\" not implemented for 'Long'"),
        (lambda x: functional.linear(x, x, x[0]), "\"addmm_cuda\" not implemented for 'Long'"),
        (lambda x: x @ x[0], "\"addmv_impl_cuda\" not implemented for 'Long'"),
        (lambda x: x[None] @ x[None], "\"baddbmm_cuda\" not implemented for 'Long'"),
        (lambda x: torch.einsum("ij,kj->ik", x, x), "\"baddbmm_cuda\" not implemented for 'Long'"),
        (lambda x: x[0].int() @ x[0].int(), "\"dot\" not implemented for 'Int'"),
        (lambda x: torch.vdot(x[0], x[1]), "\"dot\" not implemented for 'Long'"),
        (lambda x: functional.max_pool2d(x[None], 2),
         "\"max_pool2d_with_indices_out_cuda_frame\" not implemented for 'Long'"),
        (lambda x: functional.conv2d(x[None, None], x[None, None]),
         "getCudnnDataTypeFromScalarType() not supported for Long"),
        (lambda x: x.half().angle(), "\"angle_cuda\" not implemented for 'Half'"),
        (lambda x: x.half().histc(), "HalfTensor is not supported"),
        (lambda x: functional.interpolate(x.byte()[None, None], scale_factor=2, mode="bicubic"),
         "\"upsample_bicubic2d_out_frame\" not implemented for 'Byte'"),
    ],
)  # fmt: skip
def test_cuda_refuses_a_dtype_in_its_words_and_the_cpu_computes(call: Call, words: str) -> None:
    x = torch.ones(4, 4, dtype=torch.int64)
    call(x.clone())
    with pytest.raises(RuntimeError) as raised:
        call(x.cuda())
    assert str(raised.value) == words
    assert type(raised.value) is (NotImplementedError if words.startswith('"') else RuntimeError)


def test_a_check_of_types_names_those_of_cuda_as_an_h100_did() -> None:
    rows = (TESTS / "data" / "h100" / "programs.tsv").read_text().splitlines()
    there = next(row.split("\t")[1] for row in rows if row.startswith("dtypes/target-dtype/float_tokens/"))
    table = torch.ones(3, 2)
    for tokens, words in (
        (torch.ones(2, device="cuda"), there),
        (torch.ones(2), there.replace("torch.cuda.", "torch.")),
    ):
        with pytest.raises(RuntimeError) as raised:
            functional.embedding(tokens, table.to(tokens.device))
        assert f"RuntimeError: {raised.value}" == words
    with pytest.raises(RuntimeError, match=r"but got torch\.cuda\.HalfTensor instead"):
        nn.EmbeddingBag(3, 2, device="cuda")(torch.ones(1, 2, device="cuda").half())


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax"])
def test_of_truth_values_cuda_scatters_sums_alone(reduce: str) -> None:
    """Torch's table gives `scatter_reduce` of `bool` to CUDA for sums; the kernels of the others have no such dtype."""
    at, ones = torch.tensor([0, 2, 0], device="cuda"), torch.ones(3, dtype=torch.bool, device="cuda")
    if reduce == "sum":
        assert torch.zeros_like(ones).scatter_reduce(0, at, ones, reduce=reduce).tolist() == [True, False, True]
        return
    with pytest.raises(
        NotImplementedError, match="\"cuda_scatter_gather_base_kernel_func\" not implemented for 'Bool'"
    ):
        torch.zeros_like(ones).scatter_reduce(0, at, ones, reduce=reduce)


def test_a_mask_is_no_reason_to_refuse() -> None:
    x = torch.ones(4, device="cuda", requires_grad=True)
    torch.native_dropout(x, 0.5, True)[0].sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_of_einsum_cuda_refuses_what_multiplies_whole_numbers_and_computes_a_sum(dtype: torch.dtype) -> None:
    """`i->` is torch's first sample of it, so its table says that CUDA has no such dtype where it has this sum."""
    x = torch.ones(3, 3, dtype=dtype, device="cuda")
    assert torch.einsum("i->", x[0]).item() == 3
    with pytest.raises(NotImplementedError, match="baddbmm_cuda"):
        torch.einsum("aij,ajk->aik", x[None], x[None])


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz])
def test_numbers_of_eight_bits_that_nvidia_has_not_are_refused(dtype: torch.dtype) -> None:
    """Torch's samples for these dtypes are all of `float8_e4m3fn`, which CUDA has."""
    one = torch.ones((), device="cuda")

    def product(kind: torch.dtype) -> torch.Tensor:
        x = torch.ones(16, 16, device="cuda").to(kind)
        return torch._scaled_mm(x, x.t().contiguous().t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    assert product(torch.float8_e4m3fn).dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="Cannot convert ScalarType Float8_e"):
        product(dtype)


def test_dtypes_that_both_have_are_computed() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert (torch.ones(4, 4, dtype=dtype, device="cuda") @ torch.ones(4, 4, dtype=dtype, device="cuda")).is_cuda


def test_every_row_names_an_operator_of_torch_with_a_tensor() -> None:
    unknown = [name for name in refusals.table() if not hasattr(torch.ops.aten, name)]
    assert unknown == []


@pytest.mark.filterwarnings("ignore")
def test_what_the_cpu_refuses_is_computed_wider_on_a_device_and_stays_refused_on_the_host() -> None:
    x = torch.rand(4, 4).half()
    assert torch.float16 in upcast_ops.table()["_fft_r2c"]
    assert torch.int64 in upcast_ops.table()["histc"]
    counts = torch.histc(torch.arange(3, device="cuda"), bins=3, min=0, max=2)
    assert (counts.dtype, counts.tolist()) == (torch.int64, [1, 1, 1])
    spectrum = torch.fft.rfft(x.cuda())
    assert (spectrum.dtype, spectrum.device) == (torch.complex32, torch.device("cuda:0"))
    assert torch.fft.irfft(spectrum).dtype is torch.float16
    assert torch.ones(2, device="cuda", dtype=torch.complex32).sqrt_().dtype is torch.complex32
    with pytest.raises(NotImplementedError):  # what the host has not stays refused there
        torch.histc(torch.arange(3), bins=3, min=0, max=2)


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x @ y,
        lambda x, y: y @ x,
        lambda x, y: functional.linear(x, y),
        lambda x, y: functional.linear(x, y, y[0]),
        lambda x, y: functional.linear(x, x, y[0]),
        lambda x, y: torch.bmm(x[None], y[None]),
        lambda x, y: torch.mv(x, y[0]),
        lambda x, y: torch.dot(x[0], y[0]),
        lambda x, y: torch.baddbmm(y[None], x[None], x[None]),
        lambda x, y: functional.conv1d(x[None], y[None]),
        lambda x, y: functional.conv1d(x[None], x[None], y[0]),
        lambda x, y: functional.scaled_dot_product_attention(x[None], y[None], x[None]),
        lambda x, y: x.index_copy(0, torch.arange(4, device=x.device), y),
        lambda x, y: x.scatter(0, torch.zeros(4, 4, dtype=torch.long, device=x.device), y),
        lambda x, y: x.masked_scatter(x > 0, y),
    ],
)
def test_what_mixes_dtypes_is_refused_on_a_device_as_on_the_host(
    call: Callable[[torch.Tensor, torch.Tensor], object], narrow: torch.dtype
) -> None:
    x, y = torch.ones(4, 4, dtype=narrow), torch.ones(4, 4)
    for device in ("cpu", "cuda"):
        with pytest.raises(RuntimeError, match="type"):
            call(x.to(device), y.to(device))
