"""What a second sample of PyTorch's own device tests found: each mechanism in words of our own."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

CUDA = torch.device("cuda", 0)
# torch warns once in a process of some of what is called here: which test that is in depends on their order.
pytestmark = [pytest.mark.usefixtures("settings"), pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.mark.parametrize("kind", ["cuda", "cuda:0", "cuda:1"])
def test_autocast_takes_a_device_with_its_index(kind: str) -> None:
    x = torch.ones(2, 2, device="cuda")
    with torch.autocast(kind, dtype=torch.float16):
        assert (x @ x).dtype is torch.float16
    assert (x @ x).dtype is torch.float32


def test_the_default_tensor_type_is_a_dtype_and_a_device() -> None:
    try:
        torch.set_default_tensor_type("torch.cuda.DoubleTensor")
        made = (torch.ones(2), torch.tensor([1.0]), torch.arange(2.0), torch.Tensor(2), torch.Tensor([1.0]))
        assert {(each.device, each.dtype) for each in made} == {(CUDA, torch.float64)}
        assert torch.from_numpy(torch.ones(2, device="cpu").numpy()).device.type == "cpu"
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    after = (torch.ones(2), torch.Tensor(2))
    assert {(each.device.type, each.dtype) for each in after} == {("cpu", torch.float32)}


def test_a_legacy_constructor_of_a_device_is_warned_of() -> None:
    torch.set_warn_always(True)
    with pytest.warns(UserWarning, match=r"torch\.cuda\.\*DtypeTensor constructors are no longer recommended"):
        torch.cuda.FloatTensor([0])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "call", [lambda x: x.apply_(abs), lambda x: x.map_(x, lambda a, b: a), lambda x: x.map2_(x, x, lambda a, b, c: a)]
)
def test_what_runs_python_for_each_element_is_refused_on_a_device(call: Callable[[torch.Tensor], Any]) -> None:
    call(torch.ones(2))
    with pytest.raises(TypeError, match="is only implemented on CPU tensors"):
        call(torch.ones(2, device="cuda"))
    with pytest.raises(RuntimeError, match=r"requires? grad"):
        torch.ones(2, device="cuda", requires_grad=True).apply_(abs)


def test_what_is_made_of_numbers_may_be_pinned() -> None:
    assert torch.tensor([1, 2], pin_memory=True).is_pinned()
    assert not torch.tensor([1, 2]).is_pinned()
    there = torch.tensor([1, 2], device="cuda", pin_memory=True)
    assert (there.device.type, there.is_pinned()) == ("cuda", False)


def test_an_array_that_must_be_the_same_tensor_is_refused_where_it_would_be_another() -> None:
    x = torch.ones(2, device="cuda")
    assert torch.asarray(x, copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="can't alias tensor from device 'cuda:0' to 'cuda:1'"):
        torch.asarray(x, device="cuda:1", copy=False)
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
        torch.asarray(x, dtype=torch.float64, copy=False)


def test_a_storage_is_shared_and_pinned_as_its_device_allows() -> None:
    for device in ("meta", "cpu"):
        with pytest.raises(RuntimeError, match="only available on CUDA"):
            torch.UntypedStorage(4, device=device)._share_cuda_()
    for device in ("meta", "cuda"):
        with pytest.raises(TypeError, match=r"cannot pin 'torch\.storage\.UntypedStorage' only CPU memory"):
            torch.UntypedStorage(4, device=device).pin_memory()


def test_a_generator_keeps_its_offset_where_it_is_copied() -> None:
    generator = torch.Generator("cuda").manual_seed(3)
    generator.set_offset(100)
    for copy in (pickle.loads(pickle.dumps(generator)), generator.clone_state()):
        assert copy.get_offset() == 100
        assert copy.device == CUDA
        assert torch.equal(copy.get_state(), generator.get_state())


def test_a_default_generator_that_is_given_goes_on() -> None:
    default = torch.cuda.default_generators[0]
    default.manual_seed(3)
    one, other = (torch.rand(4, device="cuda", generator=default) for _ in range(2))
    assert not torch.equal(one, other)
    default.manual_seed(3)
    assert torch.equal(torch.rand(4, device="cuda"), one)
    assert torch.equal(torch.rand(4, device="cuda", generator=default), other)


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        (lambda x, mask, at: x.__setitem__(mask, 1.0), False),
        (lambda x, mask, at: x.__setitem__(mask, x[0].clone()), True),
        (lambda x, mask, at: x.__setitem__(at, x[0].clone()), False),
        (lambda x, mask, at: x[at], False),
        (lambda x, mask, at: x[at.cpu()], True),
        (lambda x, mask, at: x[mask], True),
        (lambda x, mask, at: x.repeat_interleave(at, output_size=3), False),
        (lambda x, mask, at: x.repeat_interleave(at), True),
    ],
)
def test_waits_are_reported_as_cudas_kernels_have_them(call: Callable[..., Any], waits: bool) -> None:
    x, mask, at = (torch.tensor(each, device="cuda") for each in ([1.0, 2, 3], [True, False, True], [0, 1, 2]))
    call(x, mask, at)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        call(x, mask, at)
    assert any("called a synchronizing CUDA operation" in str(each.message) for each in caught) == waits


def test_complex_numbers_are_not_multiplied_where_they_are_scattered() -> None:
    x, at = torch.ones(2, 2, dtype=torch.complex64, device="cuda"), torch.zeros(2, 2, dtype=torch.int64, device="cuda")
    x.scatter(0, at, x)
    x.scatter(0, at, x, reduce="add")
    with pytest.raises(NotImplementedError, match=r"\"cuda_scatter_gather_.*_multiply\" not implemented for 'Complex"):
        x.scatter_(0, at, x, reduce="multiply")


def test_the_bag_of_maxima_is_what_cuda_cannot_repeat() -> None:
    def learn(mode: str) -> None:
        made = torch.nn.EmbeddingBag(4, 3, mode=mode, device="cuda")
        made(torch.zeros(2, 2, dtype=torch.int64, device="cuda")).sum().backward()

    torch.use_deterministic_algorithms(True)
    learn("sum")
    learn("mean")
    with pytest.raises(RuntimeError, match="embedding_bag_backward_cuda_max does not have a deterministic"):
        learn("max")


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda x: functional.avg_pool3d(x, 2), torch.bfloat16),
        (lambda x: functional.avg_pool3d(x, 2), torch.float16),
        (lambda x: functional.interpolate(x[0], scale_factor=2, mode="bilinear", antialias=True), torch.float16),
        (torch.tanh, torch.complex32),
        (torch.sigmoid, torch.complex32),
    ],
)
def test_what_is_computed_in_half_precision_is_learnt_in_it(call: Callable[..., Any], dtype: torch.dtype) -> None:
    x = torch.ones(1, 1, 4, 4, 4, device="cuda").to(dtype).requires_grad_()
    out = call(x)
    out.backward(torch.ones_like(out))
    assert x.grad is not None
    assert (x.grad.device, x.grad.dtype) == (CUDA, dtype)


def test_a_gradient_that_is_zero_is_where_its_tensor_is() -> None:
    x, target, weight = (torch.ones(size, device="cuda:1", requires_grad=size == 3) for size in (3, 3, 1))
    (gradient,) = torch.autograd.grad(functional.l1_loss(x, target), x, create_graph=True)
    torch.ones(1, device="cuda:0").add(1)  # the device that was used last
    (second,) = torch.autograd.grad(gradient, x, weight.expand(3), allow_unused=True)
    assert second.device == x.device


def test_a_compressed_tensor_that_gets_another_size_stays_on_its_device() -> None:
    x = torch.eye(3, device="cuda:1").to_sparse_csr()
    x.resize_(2, 3)
    assert {each.device for each in (x, x.values(), x.crow_indices(), x.col_indices())} == {torch.device("cuda", 1)}
    assert x.shape == (2, 3)


@pytest.mark.parametrize("name", ["magma", "cusolver"])
def test_a_program_may_prefer_a_library_of_cudas(name: str) -> None:
    prefer = torch.backends.cuda.preferred_linalg_library
    before = prefer()
    try:
        prefer(name)
        assert str(prefer()).lower().endswith(name)
        assert torch.linalg.svdvals(torch.eye(3, device="cuda")).tolist() == [1, 1, 1]
        assert str(torch.backends.cuda.preferred_blas_library("cublaslt")).endswith("Cublaslt")
    finally:
        prefer(before)


@pytest.mark.parametrize("driver", ["gesvd", "gesvdj", "gesvda"])
def test_singular_values_are_found_in_each_of_cudas_ways(driver: str) -> None:
    x = torch.ones(3, 2, device="cuda:1")
    parts = torch.linalg.svd(x, full_matrices=False, driver=driver)
    assert {each.device for each in parts} == {x.device}
    assert torch.allclose(parts[0] @ parts[1].diag() @ parts[2], x)
    with pytest.raises(RuntimeError, match="only supported on CUDA"):
        torch.linalg.svd(x.cpu(), driver=driver)
