"""Simulated tensors: made, moved, converted, printed, saved, copied."""

from __future__ import annotations

import copy
import io
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from modes import Ops

CUDA = torch.device("cuda:0")

pytestmark = pytest.mark.usefixtures("two")


FACTORIES: list[Callable[..., torch.Tensor]] = [
    lambda **on: torch.zeros(3, **on),
    lambda **on: torch.ones(3, **on),
    lambda **on: torch.empty(3, **on),
    lambda **on: torch.full((2,), 1.0, **on),
    lambda **on: torch.rand(3, **on),
    lambda **on: torch.randn(3, **on),
    lambda **on: torch.randint(0, 3, (3,), **on),
    lambda **on: torch.randperm(3, **on),
    lambda **on: torch.normal(0.0, 1.0, (2,), **on),
    lambda **on: torch.arange(3, **on),
    lambda **on: torch.linspace(0, 1, 3, **on),
    lambda **on: torch.eye(3, **on),
    lambda **on: torch.tril_indices(3, 3, **on),
    lambda **on: torch.hann_window(4, **on),
    lambda **on: torch.empty_strided((2,), (1,), **on),
    lambda **on: torch.tensor([1.0, 2.0], **on),
    lambda **on: torch.tensor(np.ones(3), **on),
    lambda **on: torch.tensor(3, **on),
    lambda **on: torch.as_tensor(np.ones(3), **on),
    lambda **on: torch.asarray([1, 2], **on),
    lambda **on: torch.sparse_coo_tensor(torch.tensor([[0, 1]]), [1.0, 2.0], (3,), check_invariants=False, **on),
    lambda **on: torch.zeros(1).new_zeros(3, **on),
    lambda **on: torch.zeros(1).new_empty(3, **on),
    lambda **on: torch.zeros(1).new_full((3,), 1.0, **on),
    lambda **on: torch.full_like(torch.zeros(3), 1.0, **on),
    lambda **on: torch.randint_like(torch.zeros(3), 3, **on),
    lambda **on: torch.fft.fftfreq(3, **on),
    lambda **on: torch.signal.windows.hann(3, **on),
    lambda **on: torch.nested.nested_tensor([torch.ones(2)], **on),
    lambda **on: nn.Linear(1, 1, device="meta").to_empty(**{"device": "cpu"} | on).weight,
    lambda **on: torch.zeros_like(torch.zeros(3), **on),
    lambda **on: torch.randn_like(torch.zeros(3), **on),
    lambda **on: torch.zeros(1).new_tensor([1.0], **on),
]


def test_a_tensor_has_the_device_that_it_was_put_on() -> None:
    x = torch.zeros(3, device="cuda:1")
    assert x.device == torch.device("cuda:1")
    assert x.is_cuda
    assert not x.is_cpu
    assert x.get_device() == 1
    assert (x[1:] * 2).device == x.device
    assert x.cpu().device == torch.device("cpu")


def test_a_move_to_where_a_tensor_is_gives_the_tensor_itself() -> None:
    x = torch.zeros(3, device="cuda")
    assert x.to("cuda") is x
    assert x.cuda(0) is x
    assert x.to(torch.float32) is x
    assert x.to("cuda:0", copy=True) is not x


@pytest.mark.parametrize("make", FACTORIES)
def test_every_factory_makes_tensors_on_the_device_asked_for(make: Callable[..., torch.Tensor]) -> None:
    assert make(device="cuda").device == CUDA
    assert make(device=torch.device("cuda:1")).device == make(device=1).device == torch.device("cuda:1")
    assert make().device == torch.device("cpu")


def test_tensors_are_made_and_moved_where_dispatch_modes_are_switched_off() -> None:
    with torch._C._DisableTorchDispatch():
        made = torch.ones(2, device="cuda:1")
        moved, back = torch.ones(2).to("cuda:1"), made.cpu()
    assert [str(each.device) for each in (made, made + moved, back)] == ["cuda:1", "cuda:1", "cpu"]


@pytest.mark.parametrize(
    "make",
    [
        torch.zeros_like,
        torch.randn_like,
        torch.empty_like,
        lambda x: x.new_zeros(2),
        lambda x: x.new_full((2,), 1.0),
        lambda x: x.new_tensor([1.0]),
        lambda x: x.new(3),
        lambda x: torch.asarray(x),
        lambda x: torch.complex(x, x),
        lambda x: functional.one_hot(x.long()),
        lambda x: torch.stack([x, x]),
        lambda x: x.to_sparse(),
        lambda x: torch.meshgrid(x, x, indexing="ij")[0],
        lambda x: torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged),
    ],
)
def test_what_is_made_from_a_tensor_is_where_that_tensor_is(make: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert make(torch.ones(3, device="cuda:1")).device == torch.device("cuda:1")
    assert make(torch.ones(3)).device == torch.device("cpu")


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_attention_and_products_take_nested_tensors(needs_gradient: bool) -> None:
    def answers(device: str) -> list[torch.Tensor]:
        rows = [torch.arange(n * 8.0, device=device).reshape(n, 2, 4).sin() for n in (3, 2)]
        jagged = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=needs_gradient).transpose(1, 2)
        attended = functional.scaled_dot_product_attention(jagged, jagged, jagged).transpose(1, 2).values()
        strided = torch.nested.nested_tensor([row[:, 0] for row in rows])
        product = strided @ strided.transpose(1, 2)
        return [attended, product.to_padded_tensor(0.0)]

    here, there = answers("cpu"), answers("cuda")
    assert [each.device for each in there] == [CUDA, CUDA]
    assert all(torch.equal(one, other.cpu()) for one, other in zip(here, there, strict=True))


def test_torch_tensor_of_a_tensor_copies_where_that_tensor_is() -> None:
    x = torch.ones(3, device="cuda:1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch recommends clone()
        assert torch.tensor(x).device == x.device
        assert torch.tensor(x, device="cpu").device == torch.device("cpu")
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, device="cuda:0").device == CUDA


def test_a_module_moves_with_all_it_has_and_keeps_its_parameter_objects() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = model[0].weight
    assert model.to("cuda").half().float().to("cuda:1") is model
    assert model[0].weight is weight
    assert {str(t.device) for t in model.state_dict().values()} == {"cuda:1"}
    assert model.to(torch.ones(1, device="cuda:0"))[0].weight.device == CUDA
    assert nn.Linear(2, 2, device="meta").to_empty(device="cuda").weight.is_cuda
    model.to(device="cpu", dtype=torch.float64)
    assert model[0].weight.dtype is torch.float64
    assert model[0].weight.device == torch.device("cpu")


def test_to_another_tensor_takes_its_device_and_dtype() -> None:
    x = torch.ones(2, device="cuda")
    host = torch.ones(1, dtype=torch.int32)
    assert x.to(host).device == torch.device("cpu")
    assert host.to(x).device == CUDA
    assert host.to(other=x).dtype is torch.float32
    assert x.type_as(host).device == torch.device("cpu")


def test_the_legacy_type_names_device_and_dtype() -> None:
    x = torch.ones(2, device="cuda:1")
    assert x.type() == "torch.cuda.FloatTensor"
    assert x.type("torch.cuda.DoubleTensor").device == x.device
    assert x.type("torch.FloatTensor").device == torch.device("cpu")
    assert torch.ones(2).type("torch.cuda.HalfTensor").dtype is torch.float16
    assert x.type(torch.int32).device == x.device


def test_values_come_back_as_they_are() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda")
    assert x.tolist() == x.cpu().numpy().tolist() == x.numpy(force=True).tolist() == [1, 2]
    assert (x[0].item(), float(x[1]), int(x[1]), bool(x[0]), f"{x[1]:.1f}") == (1, 2, 2, True, "2.0")
    assert [float(value) for value in x] == [1, 2]


def test_a_tensor_prints_its_device() -> None:
    assert repr(torch.tensor([1.0, 2.0], device="cuda:1")) == "tensor([1., 2.], device='cuda:1')"
    assert "device='cuda:0', requires_grad=True)" in repr(nn.Parameter(torch.ones(2, device="cuda")))
    assert "device='cuda:0'" in repr(torch.rand(60, 60, device="cuda"))
    assert "cuda:0" in repr(torch.eye(3, device="cuda").to_sparse())


def test_pinned_memory_is_host_memory_that_is_known_as_pinned() -> None:
    x = torch.rand(3)
    assert x.pin_memory().is_pinned()
    assert not x.is_pinned()
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert x.pin_memory().to("cuda", non_blocking=True).device == CUDA
    with pytest.raises(
        RuntimeError, match="cannot pin 'torch\\.cuda\\.FloatTensor' only dense CPU tensors can be pinned"
    ):
        x.cuda().pin_memory()
    for make in (torch.zeros, torch.rand, torch.arange, torch.empty):
        with pytest.raises(RuntimeError, match=r"^Only dense CPU tensors can be pinned$"):
            make(3, device="cuda", pin_memory=True)
    with pytest.raises(RuntimeError, match=r"^Only dense CPU tensors can be pinned$"):
        torch.zeros_like(x.cuda(), pin_memory=True)
    assert torch.zeros_like(x.cuda(), device="cpu", pin_memory=True).is_pinned()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pin", [False, True])
def test_a_data_loader_gives_host_batches_pinned_as_asked(workers: int, pin: bool) -> None:
    data = TensorDataset(torch.randn(8, 3), torch.arange(8))
    seen = []
    for features, target in DataLoader(data, batch_size=4, num_workers=workers, pin_memory=pin):
        assert features.is_pinned() is pin
        assert features.device == torch.device("cpu")
        seen += target.to("cuda", non_blocking=True).tolist()
    assert seen == list(range(8))


@pytest.mark.parametrize(
    ("map_location", "expected"),
    [
        (None, "cuda:1"),
        ("cpu", "cpu"),
        ("cuda:0", "cuda:0"),
        (torch.device("cuda"), "cuda:0"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
        (lambda storage, target: storage, "cpu"),
        (lambda storage, target: storage.cuda(0), "cuda:0"),
    ],
)
def test_what_was_saved_is_loaded_to_the_device_asked_for(map_location: Any, expected: str, tmp_path: Path) -> None:
    x = torch.rand(4, device="cuda:1")
    torch.save({"x": x, "view": x[2:]}, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", map_location=map_location)
    assert {str(loaded["x"].device), str(loaded["view"].device)} == {expected}
    assert loaded["x"].tolist() == x.tolist()


def test_a_file_saved_in_a_simulation_is_an_ordinary_checkpoint(tmp_path: Path) -> None:
    torch.save(torch.rand(100), tmp_path / "host.pt")
    torch.save(torch.rand(100, device="cuda"), tmp_path / "device.pt")
    sizes = [(tmp_path / name).stat().st_size for name in ("host.pt", "device.pt")]
    assert abs(sizes[0] - sizes[1]) <= 64  # the word `cuda:0` instead of `cpu`, aligned
    assert torch.load(tmp_path / "device.pt", mmap=True, map_location="cpu").device == torch.device("cpu")


def test_state_goes_between_modules_as_torch_has_it() -> None:
    there, here = nn.Linear(2, 2).cuda(), nn.Linear(2, 2)
    here.load_state_dict(there.state_dict())
    assert here.weight.device == torch.device("cpu")
    assert here.weight.tolist() == there.weight.tolist()
    here.load_state_dict(there.state_dict(), assign=True)
    assert here.weight.device == CUDA


def test_copies_and_pickles_stay_on_the_device() -> None:
    x = torch.rand(3, device="cuda:1", requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert other.device == x.device
        assert torch.equal(other, x)
    assert copy.deepcopy(x).data_ptr() != x.data_ptr()
    model = nn.Linear(2, 2).cuda()
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(buffer, weights_only=False)):
        assert again.weight.device == CUDA


def test_a_storage_has_the_device_of_its_tensor() -> None:
    storage = torch.rand(3, device="cuda:1").untyped_storage()
    assert storage.device == torch.device("cuda:1")
    assert storage.is_cuda
    assert storage.get_device() == 1
    assert storage.clone().device == storage.device
    assert storage.cpu().device == torch.device("cpu")
    assert storage.cuda(0).device == CUDA


def test_a_gradient_is_taken_from_the_tensors_own_device_only() -> None:
    parameter = nn.Parameter(torch.ones(3, device="cuda"))
    with pytest.raises(RuntimeError, match=r"different device|on the same device"):
        parameter.grad = torch.ones(3)
    parameter.grad = torch.ones(3, device="cuda")
    parameter.grad = None
    parameter.data = torch.ones(3, device="cuda:1")
    assert parameter.device == torch.device("cuda:1")


def test_a_subclass_stays_itself() -> None:
    class Named(torch.Tensor):
        pass

    x = torch.ones(3, device="cuda").as_subclass(Named)
    assert type(x.to("cuda:1")) is Named
    assert (x.cpu() + 1).device == torch.device("cpu")
    assert (x + 1).device == CUDA


def test_legacy_constructors_make_host_tensors_whatever_was_used_last() -> None:
    torch.ones(3, device="cuda") * 2
    for made in (torch.Tensor(3), torch.Tensor([1, 2]), torch.FloatTensor(2), torch.LongTensor([1]), torch.Tensor()):
        assert made.device == torch.device("cpu")
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        torch.ones(3, device="cuda") + torch.Tensor(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # once in a process: that it is no longer recommended
        assert torch.cuda.FloatTensor([1, 2]).device == CUDA  # type: ignore[attr-defined]
    assert isinstance(torch.ones(2), torch.FloatTensor)
    assert not isinstance(torch.ones(2, device="cuda"), torch.FloatTensor)
    assert isinstance(torch.ones(2, device="cuda"), torch.cuda.FloatTensor)  # type: ignore[attr-defined]


def test_what_a_composite_makes_in_cpp_joins_the_tensors_it_is_combined_with() -> None:
    torch.ones(3, device="cuda") * 2  # the last device used is no reason to be there
    assert functional.one_hot(torch.tensor([0, 1])).device == torch.device("cpu")
    assert functional.one_hot(torch.tensor([0, 1], device="cuda:1")).device == torch.device("cuda:1")
    assert torch.where(torch.ones(2, device="cuda") > 0, 1.0, 2.0).device == CUDA


def test_a_packed_sequence_keeps_its_batch_sizes_on_the_host() -> None:
    rows = torch.ones(2, 3, 1, device="cuda")
    packed = nn.utils.rnn.pack_padded_sequence(rows, torch.tensor([3, 2]), batch_first=True)
    assert packed.data.device == CUDA
    assert packed.batch_sizes.device == torch.device("cpu")
    output, _ = nn.LSTM(1, 2).cuda()(packed)
    assert output.data.device == CUDA


def test_tensors_of_a_transform_have_their_device() -> None:
    def loss(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        assert weight.device == x.device == CUDA
        return (weight * x + torch.ones(3, device=x.device)).sum()

    x = torch.ones(3, device="cuda")
    assert torch.func.grad(loss)(x, x).device == CUDA
    assert torch.func.vmap(lambda row: loss(row, x))(torch.ones(2, 3, device="cuda")).device == CUDA
    assert torch.func.grad(lambda a: a.to("cuda:1").sum())(x).device == CUDA


def test_inference_mode_follows_the_same_rules() -> None:
    with torch.inference_mode():
        model = nn.Linear(3, 2).cuda()
        assert model(torch.ones(1, 3, device="cuda")).device == CUDA
        with pytest.raises(RuntimeError, match="wrapper_CUDA_addmm"):
            model(torch.ones(1, 3))
        x = torch.ones(3).to("cuda")
        assert x.to("cuda") is x
        assert functional.one_hot(x.long()).device == CUDA


def test_an_operator_with_a_kernel_of_its_own_is_not_taken_apart() -> None:
    torch.manual_seed(0)
    x, back = torch.randn(64), torch.randn(64)
    for name in ("silu_backward", "mish_backward"):
        operator = getattr(torch.ops.aten, name)
        assert torch.equal(operator(back.to("cuda"), x.to("cuda")).cpu(), operator(back, x))


def test_scripted_and_compiled_functions_run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is on its way out

        @torch.jit.script
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return x * 2 + torch.zeros(3, device=x.device)

    assert doubled(torch.ones(3, device="cuda")).device == CUDA
    assert torch.compile(lambda x: x * 2)(torch.ones(3, device="cuda")).device == CUDA


def test_an_operator_of_the_program_gives_what_its_kernel_makes() -> None:
    @torch.library.custom_op("devtrace_tests::shifted", mutates_args=())
    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(3, device=x.device)

    assert shifted(torch.ones(3, device="cuda:1")).device == torch.device("cuda:1")
    assert shifted(torch.ones(3)).device == torch.device("cpu")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_an_operator_of_quantized_tensors_runs_their_kernel() -> None:
    weight = torch.quantize_per_tensor(torch.ones(2, 3), 0.5, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    assert torch.ops.quantized.linear_dynamic(torch.ones(1, 3), packed).tolist() == [pytest.approx([3, 3])]


def test_an_operator_runs_the_kernel_of_the_layout_that_the_program_wrote_it_for() -> None:
    with torch.library._scoped_library("devtrace_tests", "FRAGMENT") as library:
        library.define("stored(Tensor x) -> Tensor")
        library.impl("stored", lambda x: x.values() + 1, "SparseCPU")
        sparse = torch.eye(2, device="cuda:1").to_sparse().coalesce()
        assert torch.ops.devtrace_tests.stored(sparse).tolist() == [2, 2]


def test_an_operator_runs_the_kernel_that_the_program_wrote_for_cuda() -> None:
    @torch.library.custom_op("devtrace_tests::only_cuda", mutates_args=(), device_types="cuda")
    def only_cuda(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.library.custom_op("devtrace_tests::either", mutates_args=())
    def either(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @either.register_kernel("cuda")
    def _(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    x = torch.ones(2, device="cuda:1")
    assert only_cuda(x).device == x.device
    assert only_cuda(x).tolist() == [2, 2]
    assert either(x).tolist() == [3, 3]
    assert either(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        only_cuda(torch.ones(2))


def test_every_factory_of_torch_takes_a_number_for_a_device() -> None:
    schemas = torch._C._jit_get_all_schemas()
    takes = {each.name.removeprefix("aten::") for each in schemas if any(a.name == "device" for a in each.arguments)}
    own = [name for name in takes if type(getattr(torch, name, None)).__name__ == "builtin_function_or_method"]
    methods = [name for name in takes if type(getattr(torch.Tensor, name, None)).__name__ == "method_descriptor"]
    assert {name for name in own if not name.startswith("_")} == set()
    assert {name for name in methods if not name.startswith("_")} <= {"is_pinned", "pin_memory"}


@pytest.mark.parametrize("where", ["cuda", 1])
def test_a_lazy_module_can_be_moved_before_its_first_input(where: Any) -> None:
    device = torch.device("cuda:1" if where == 1 else "cuda:0")
    module = nn.LazyLinear(3).to(where)
    assert module.weight.device == device
    assert module(torch.ones(2, 4, device=device)).device == device
    assert nn.LazyConv2d(2, 1).cuda(where if where == 1 else None)(torch.ones(1, 4, 2, 2, device=device)).is_cuda


@pytest.mark.parametrize("other", ["cpu", "cuda:1", "meta"])
def test_a_gradient_of_another_device_is_refused_in_the_words_of_this_torch(other: str) -> None:
    with pytest.raises(RuntimeError) as torchs:
        torch.ones(2).grad = torch.ones(2, device="meta")
    with pytest.raises(RuntimeError) as ours:
        torch.ones(2, device="cuda").grad = torch.ones(2, device=other)
    if "'meta'" in str(torchs.value):
        names = ("index '1'", "index '0'") if other == "cuda:1" else (f"type '{other}'", "type 'cuda'")
        assert [name in str(ours.value) for name in names] == [True, True]
    assert str(ours.value).split()[:4] == str(torchs.value).split()[:4]


def test_groups_for_optimizers_are_those_of_the_simulated_devices() -> None:
    parameters = [nn.Parameter(torch.ones(2, device=where)) for where in ("cuda", "cpu", "cuda:1", "cuda")]
    for each in parameters:
        each.grad = torch.ones_like(each)
    asked: list[Any] = [parameters, [None] * 4]
    groups = torch.utils._foreach_utils._group_tensors_by_device_and_dtype(asked, True)
    found = {str(where): numbers for (where, _), (_, numbers) in groups.items()}
    assert found == {"cuda:0": [0, 3], "cpu": [1], "cuda:1": [2]}
    with Ops() as ops:
        nn.utils.clip_grad_norm_([parameters[0], parameters[3]], 1.0)
        torch.optim.SGD([parameters[0], parameters[3]], foreach=True, lr=0.1).step()
    assert "aten._to_copy.default" not in ops.seen


def copies(func: Any, args: Any, kwargs: Any) -> str:
    return f"{args[1].device} to {args[0].device}" if func is torch.ops.aten.copy_.default else ""


def test_what_a_storage_is_copied_to_is_on_its_device_from_the_start() -> None:
    x = torch.ones(2, device="cuda:1")
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    with Ops(copies) as copied:
        copy.deepcopy(x)
    with Ops(copies) as loaded:
        torch.load(io.BytesIO(file.getvalue()), map_location="cuda:1")
    seen = [[copy for copy in each.seen if copy] for each in (copied, loaded)]
    assert seen == [["cuda:1 to cuda:1"], ["cpu to cuda:1"]]


def test_a_seed_runs_no_operator() -> None:
    with Ops() as ops:
        torch.manual_seed(0)
        torch.cuda.manual_seed(1)
    assert ops.seen == []


SPARSE_INDICES, SPARSE_SHAPE = [[0, 1], [1, 0]], (2, 2)


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_indices_of_a_sparse_tensor_that_are_a_list_are_made_where_its_values_are() -> None:
    indices, values = torch.tensor(SPARSE_INDICES), torch.ones(2, device="cuda:1")
    make: Any = torch.sparse_coo_tensor  # whose stub has tensors only
    for made in (
        make(SPARSE_INDICES, values, SPARSE_SHAPE),
        make(indices=np.array(SPARSE_INDICES), values=values),
        make(indices, values, SPARSE_SHAPE, device="cuda:1"),
    ):
        assert made.device == made._indices().device == made._values().device == torch.device("cuda:1")
    rows = torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), values, size=SPARSE_SHAPE)
    assert rows.device == rows.col_indices().device == torch.device("cuda:1")
    assert indices.device == torch.device("cpu")
    leaf = torch.sparse_coo_tensor(indices, [1.0, 2.0], SPARSE_SHAPE, device="cuda", requires_grad=True)
    assert leaf.is_leaf
    assert leaf.requires_grad


MIXED_SPARSE = pytest.mark.parametrize(
    ("indices", "values", "words"),
    [
        ("cpu", "cuda:0", "got values is on cuda:0, different from other tensors on cpu"),  # as an H100 says it
        ("cuda:0", "cpu", r"backend of indices \(CUDA\) must match backend of values \(CPU\)"),
        ("cuda:0", "cuda:1", "got values is on cuda:1, different from other tensors on cuda:0"),
    ],
)


@MIXED_SPARSE
def test_tensors_that_a_sparse_tensor_is_made_of_are_not_moved(indices: str, values: str, words: str) -> None:
    where, what = torch.tensor(SPARSE_INDICES, device=indices), torch.ones(2, device=values)
    with pytest.raises(RuntimeError, match=words):
        torch.sparse_coo_tensor(where, what, SPARSE_SHAPE)
    with pytest.raises(RuntimeError, match=words):
        torch.sparse_coo_tensor(values=what, indices=where)


@MIXED_SPARSE
@pytest.mark.parametrize("kind", ["torch.sparse", "torch.cuda.sparse"])
@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor")
def test_the_older_sparse_constructors_move_nothing(kind: str, indices: str, values: str, words: str) -> None:
    there = torch.tensor(SPARSE_INDICES, device=values)
    make = vars(sys.modules[kind])["FloatTensor"]
    assert make(there, torch.ones(2, device=values), torch.Size(SPARSE_SHAPE)).device == torch.device(values)
    with pytest.raises(RuntimeError, match=words):
        make(torch.tensor(SPARSE_INDICES, device=indices), torch.ones(2, device=values), torch.Size(SPARSE_SHAPE))


@pytest.mark.parametrize("coalesced", [True, False])
def test_a_sparse_product_is_differentiated_on_its_device(coalesced: bool) -> None:
    values = torch.ones(2, device="cuda:1", requires_grad=True)
    matrix = torch.sparse_coo_tensor(torch.tensor(SPARSE_INDICES, device="cuda:1"), values, SPARSE_SHAPE)
    matrix = matrix.coalesce() if coalesced else matrix
    assert matrix.t().device == torch.device("cuda:1")
    x = torch.ones(2, 2, device="cuda:1", requires_grad=True)
    torch.sparse.mm(matrix, x).sum().backward()
    assert [None if each.grad is None else str(each.grad.device) for each in (x, values)] == ["cuda:1", "cuda:1"]


def test_lists_of_tensors_are_copied_between_any_devices() -> None:
    targets = [torch.zeros(2), torch.zeros(2, device="cuda"), torch.zeros(2, device="cuda:1")]
    torch._foreach_copy_(targets, [torch.ones(2, device=where) for where in ("cuda", "cpu", "cuda:0")])
    assert [str(target.device) for target in targets] == ["cpu", "cuda:0", "cuda:1"]
    assert all(target.sum().item() == 2 for target in targets)
