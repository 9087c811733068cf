"""What the tests of PyTorch and of libraries ask of CUDA, each mechanism in a few programs of our own wording."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import pytest
import torch
import torch._refs.fft
from torch import nn
from torch.nn import functional

import devtrace
from modes import Ops

CUDA = torch.device("cuda:0")
SECOND = torch.device("cuda:1")

pytestmark = pytest.mark.usefixtures("settings")


def on_a_device(x: torch.Tensor, device: Optional[torch.device] = None) -> torch.Tensor:  # noqa: UP045
    return x + 1


def of_points(device: str = "cuda") -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[0, 2]]), [1.0, 2.0], (4,), device=device)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.zero_(),
        lambda s: s.copy_(of_points()),
        lambda s: s.copy_(of_points("cpu")),
        lambda s: s.sparse_resize_and_clear_((6,), 1, 0),
        lambda s: s.sparse_resize_((6,), 1, 0),
        lambda s: s.mul_(2),
        lambda s: s.add_(of_points()),
        lambda s: s.neg_(),
    ],
)
def test_a_sparse_tensor_that_is_changed_where_it_is_stays_on_its_device(change: Callable[[torch.Tensor], Any]) -> None:
    points = of_points()
    change(points)
    assert points.device == points.coalesce().values().device == points.coalesce().indices().device == CUDA


def test_sparse_gradients_are_zeroed_where_they_are() -> None:
    table = nn.Embedding(5, 2, sparse=True, device="cuda")
    update = torch.optim.SGD(table.parameters(), lr=0.5)
    for _ in range(2):
        update.zero_grad(set_to_none=False)
        table(torch.tensor([3, 0], device="cuda")).sum().backward()
        update.step()
    assert table.weight.grad is not None
    assert table.weight.grad.device == CUDA


def test_set_leaves_a_tensor_on_its_device() -> None:
    x: Any = torch.ones(3, device="cuda:1")
    y = torch.ones(2, device="cuda:1")
    assert x.set_().device == SECOND
    assert x.set_(y).device == SECOND
    assert x.set_(y.untyped_storage()).device == SECOND


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_number_is_copied_into_a_tensor(device: str) -> None:
    x: Any = torch.zeros(2, device=device)
    x.copy_(2.5)
    assert x.tolist() == [2.5, 2.5]


def test_dlpack_hands_a_tensor_on_with_its_device() -> None:
    x = torch.arange(3.0, device="cuda:1")
    with pytest.raises(BufferError, match="on a different CUDA device index"):
        torch.utils.dlpack.from_dlpack(x)
    torch.cuda.set_device(1)
    y = torch.utils.dlpack.from_dlpack(x)
    y[0] = 7
    assert (y.device, x.tolist(), (x + y).device) == (SECOND, [7, 1, 2], SECOND)
    assert torch.utils.dlpack.from_dlpack(torch._C._to_dlpack(x)).device == SECOND
    assert x.__dlpack_device__() == (2, 1)
    assert torch.utils.dlpack.from_dlpack(np.ones(2)).device == torch.device("cpu")
    assert torch.utils.dlpack.from_dlpack(x, device="cpu").device == torch.device("cpu")
    with pytest.raises(Exception, match="device"):
        np.from_dlpack(x)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert torch.utils.dlpack.from_dlpack(torch.ones(1, device="cuda:1")[:0]).device == SECOND


def test_an_array_of_what_dlpack_hands_on_is_on_its_device() -> None:
    x = torch.arange(3.0, device="cuda")
    y = torch.asarray(torch._C._to_dlpack(x))
    y[0] = 7
    assert (y.device, x.tolist()) == (CUDA, [7, 1, 2])
    assert torch.asarray(torch._C._to_dlpack(x), device="cpu").device.type == "cpu"
    assert torch.asarray(torch._C._to_dlpack(torch.ones(1))).device.type == "cpu"


def test_a_stream_of_another_library_is_known_by_its_pointer() -> None:
    own = torch.cuda.Stream(1)
    same = torch.cuda.ExternalStream(own.cuda_stream, device=1)
    assert (same, same.device, same.cuda_stream) == (own, SECOND, own.cuda_stream)
    assert torch.cuda.ExternalStream(4711).device == CUDA


@pytest.mark.parametrize(
    "make",
    [
        lambda **to: torch.zeros(3, **to),
        lambda **to: torch.full((3,), 2.0, **to),
        lambda **to: torch.arange(3.0, **to),
        lambda **to: torch.linspace(0, 1, 3, **to),
        lambda **to: torch.logspace(0, 1, 3, **to),
        lambda **to: torch.rand(3, **to),
    ],
)
def test_what_is_made_in_an_existing_tensor_may_name_its_device(make: Callable[..., torch.Tensor]) -> None:
    out = torch.empty(3, device="cuda")
    assert make(out=out, device="cuda") is out
    assert make(out=out, device=0).device == CUDA
    with torch.device("cuda"):
        assert make(out=out).device == CUDA
    with pytest.raises(RuntimeError, match="does not match device"):
        make(out=out, device="cpu")
    with pytest.raises(RuntimeError, match="does not match device"):
        make(out=torch.empty(3), device="cuda")


def test_asarray_returns_what_learns_where_it_is_asked_to() -> None:
    x = torch.ones(2, device="cuda")
    assert torch.asarray(x, requires_grad=True).requires_grad
    assert torch.asarray(torch.ones(2), device="cuda", requires_grad=True).requires_grad
    weight = nn.Parameter(x)
    assert not torch.asarray(weight * 2).requires_grad
    assert torch.as_tensor(weight * 2).requires_grad


@pytest.mark.filterwarnings("ignore:The torch.cuda")  # once in a process: that they are no longer recommended
def test_legacy_constructors_take_the_device_of_their_kind() -> None:
    cuda: Any = torch.cuda
    assert cuda.FloatTensor(2, device=1).device == SECOND
    assert cuda.HalfTensor([1, 2], device="cuda").device == CUDA
    assert torch.ones(1, device="cuda").new(3, device="cuda:1").device == SECOND
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cuda but device type: cpu"):
        cuda.FloatTensor(2, device="cpu")
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: cuda"):
        torch.ones(1).new(2, device="cuda")


def test_storages_are_made_on_a_device() -> None:
    assert torch.UntypedStorage(4, device="cuda:1").device == SECOND
    assert torch.UntypedStorage([1, 2], device="cuda").tolist() == [1, 2]
    assert torch.UntypedStorage(4).device == torch.UntypedStorage().device == torch.device("cpu")
    assert torch.cuda.FloatStorage(3).device == CUDA
    assert torch.TypedStorage(3, dtype=torch.half, device="cuda").device == CUDA
    storage: Any = torch.ones(2, device="cuda:1").untyped_storage()
    assert storage.new().device == SECOND
    assert torch.ones(2, device="cuda").storage().device == CUDA


def test_a_copy_to_the_host_that_does_not_block_is_in_pinned_memory() -> None:
    x = torch.ones(2, device="cuda")
    assert x.to("cpu", non_blocking=True).is_pinned()
    assert x.untyped_storage().to(device="cpu", non_blocking=True).is_pinned()
    assert not x.to("cpu").is_pinned()
    assert not torch.ones(2).to("cpu", non_blocking=True).is_pinned()


def test_ctc_loss_takes_lengths_and_targets_of_the_host() -> None:
    chances = torch.randn(12, 2, 5, device="cuda", requires_grad=True)
    targets = torch.tensor([[1, 2], [3, 4]])
    lengths, steps = torch.tensor([2, 2]), torch.tensor([12, 9])
    loss = functional.ctc_loss(chances.log_softmax(2), targets.cuda(), steps, lengths)
    loss.backward()
    assert chances.grad is not None
    assert loss.device == chances.grad.device == CUDA
    flat = targets.flatten().int()
    assert functional.ctc_loss(chances.log_softmax(2), flat, steps.int(), lengths.int()).device == CUDA
    assert functional.ctc_loss(chances.cpu().log_softmax(2), targets.cuda(), steps, lengths).device.type == "cpu"
    one = functional.ctc_loss(chances[:, 0].log_softmax(1), targets[0].cuda(), torch.tensor(12), torch.tensor(2))
    assert one.device == CUDA


@pytest.mark.parametrize(
    "call",
    [
        lambda x: functional.adaptive_avg_pool2d(x, 3).sum().backward(),
        lambda x: functional.adaptive_max_pool2d(x, 3).sum().backward(),
        lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic", antialias=True).sum().backward(),
        lambda x: functional.grid_sample(x, x.new_zeros(1, 2, 2, 2), align_corners=True).sum().backward(),
        lambda x: x.detach().flatten().histc(4),
        lambda x: x.detach().median(0),
        lambda x: torch.bincount(torch.ones(3, dtype=torch.int64, device=x.device), x.detach().flatten()[:3]),
        lambda x: torch.zeros(3, device=x.device).scatter_reduce(
            0, torch.zeros(3, dtype=torch.int64, device=x.device), torch.ones(3, device=x.device), "prod"),
    ],
)  # fmt: skip
def test_what_cuda_cannot_repeat_is_refused_where_a_program_asks_for_determinism(call: Callable[..., Any]) -> None:
    def image(device: str) -> torch.Tensor:
        return torch.rand(1, 1, 8, 8, device=device, requires_grad=True)

    call(image("cuda"))
    torch.use_deterministic_algorithms(True)
    call(image("cpu"))
    with pytest.raises(RuntimeError, match="does not have a deterministic implementation, but you set"):
        call(image("cuda"))
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=r"does not have a deterministic .*warn_only=True"):
        call(image("cuda"))


def test_determinism_refuses_nothing_that_cuda_repeats() -> None:
    x = torch.rand(1, 1, 8, 8, device="cuda", requires_grad=True)
    at = torch.zeros(3, dtype=torch.int64, device="cuda")
    torch.use_deterministic_algorithms(True)
    functional.conv2d(x, x[..., :3, :3]).sum().backward()
    functional.interpolate(x, scale_factor=2, mode="bilinear").sum().backward()
    x.detach().cumsum(0).median()
    torch.bincount(at)
    torch.zeros(3, device="cuda").scatter_add_(0, at, torch.ones(3, device="cuda")).index_add_(0, at, at.float())
    torch.zeros(3, device="cuda").scatter_reduce(0, at, torch.ones(3, device="cuda"), "amax")


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.any()),
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.ones(2).to(x.device),
        lambda x: torch.ones(2).copy_(x[:2]),
        lambda x: torch.cuda.current_stream().synchronize(),
    ],
)
def test_waits_are_reported_where_a_program_asks(wait: Callable[[torch.Tensor], Any]) -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        wait(x)
    torch.cuda.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        wait(x)
    torch.cuda.set_sync_debug_mode("error")
    (x + 1).sum().add(torch.ones(()))
    x.to("cpu", non_blocking=True)
    torch.ones(2).pin_memory().to("cuda", non_blocking=True)
    x.to("cuda:1")
    torch.ones(2).sum().item()
    torch.cuda.set_sync_debug_mode("default")
    wait(x)


def test_modules_read_their_arguments_as_torch_does() -> None:
    layer: Any = nn.Linear(2, 2)
    for where in ("cpu", "cuda"):
        with pytest.raises(RuntimeError, match="does not accept copy argument"):
            layer.to(where, copy=True)
        with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments"):
            layer.to(torch.device(where), True)
    with pytest.raises(TypeError, match="floating point or complex"):
        layer.to(torch.int64)
    assert layer.to(1, torch.half, True).weight.dtype is torch.half
    assert layer.weight.device == SECOND
    assert layer.to(torch.ones(1, device="cuda")).weight.device == CUDA
    assert layer.to(device="cpu", dtype=torch.float64).weight.device == torch.device("cpu")


def test_norms_of_ranks_are_joined_by_one_count_too() -> None:
    x = torch.randn(6, 3, device="cuda")
    mean, invstd = torch.batch_norm_stats(x, 1e-5)
    twice = torch.stack([mean, mean]), torch.stack([invstd, invstd])
    joint, joint_invstd = torch.batch_norm_gather_stats(x, *twice, None, None, 0.1, 1e-5, 6)
    torch.testing.assert_close(joint, mean)
    torch.testing.assert_close(joint_invstd, invstd)


@pytest.mark.parametrize("loss", [nn.MultiLabelMarginLoss(), nn.MultiMarginLoss()])
def test_margin_losses_learn_in_half_precision(loss: nn.Module) -> None:
    x = torch.randn(3, 5, device="cuda", dtype=torch.half, requires_grad=True)
    target = torch.tensor([[1, -1, 0, 0, 0]] * 3 if isinstance(loss, nn.MultiLabelMarginLoss) else [1, 0, 2])
    loss(x, target.cuda()).backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.device) == (torch.half, CUDA)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda comm, x: comm.scatter(x, (), dim=0), "Expected at least one device to scatter to"),
        (lambda comm, x: comm.scatter(x, (0, 1), chunk_sizes=(4,)),
         r"of same length, but got len\(devices\) = 2 and len\(chunk_sizes\) = 1"),
        (lambda comm, x: comm.scatter(x, out=()), "Expected at least one output tensor to scatter to"),
        (lambda comm, x: comm.scatter(x, out=[torch.empty(4, 2)]),
         "Expected all output tensors to be CUDA tensors, but output tensor at index 0 has device 'cpu'"),
        (lambda comm, x: comm.gather([]), "Expected at least one tensor to gather from"),
        (lambda comm, x: comm.gather([x, x.cpu()]), "Expected all input tensors to be CUDA tensors, but tensor"),
        (lambda comm, x: comm.gather([x, x[None]]), "Expected all input tensors to have the same number of dimensions"),
        (lambda comm, x: comm.gather([x, x[:, :1]], dim=0), "Input tensor at index 1 has invalid shape"),
        (lambda comm, x: comm.gather([x, x], out=torch.empty(3, 2, device="cuda")), "Expected out tensor to have"),
        (lambda comm, x: comm.broadcast(x, out=[torch.empty(4, 2)]), "Expected all output tensors to be CUDA tensors"),
        (lambda comm, x: comm.broadcast_coalesced([x.cpu()], (0, 1)), "All tensors must be on devices"),
    ],
)  # fmt: skip
def test_copies_between_devices_are_checked_in_torchs_words(call: Callable[..., Any], words: str) -> None:
    import torch.cuda.comm

    with pytest.raises(RuntimeError, match=words):
        call(torch.cuda.comm, torch.ones(4, 2, device="cuda"))


def test_copies_between_devices_keep_layout_and_identity() -> None:
    import torch.cuda.comm

    parts = [torch.rand(2, 3, 4, 4, device=d).contiguous(memory_format=torch.channels_last) for d in (CUDA, SECOND)]
    assert torch.cuda.comm.gather(parts, 0, 0).is_contiguous(memory_format=torch.channels_last)
    tensors = [torch.ones(2, device="cuda"), of_points(), torch.empty(0, device="cuda")]
    first, second = torch.cuda.comm.broadcast_coalesced(tensors, (0, 1))
    assert all(mine is given for mine, given in zip(first, tensors, strict=True))
    assert {each.device for each in second} == {SECOND}


def test_a_permutation_of_nothing_asks_no_generator() -> None:
    for device, of in (("cuda", "cpu"), ("cpu", "cuda")):
        assert torch.randperm(0, device=device, generator=torch.Generator(of)).shape == (0,)
        with pytest.raises(RuntimeError, match="generator"):
            torch.randperm(3, device=device, generator=torch.Generator(of))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(
    ("way", "sizes"), [("fft", "6"), ("fftn", "3, 6"), ("rfft", "6"), ("ifft", "6"), ("hfft", "10"), ("irfft", "10")]
)
@pytest.mark.parametrize("dtype", [torch.half, torch.complex32])
def test_transforms_in_half_precision_are_refused_for_other_sizes_than_powers_of_two(
    way: str, sizes: str, dtype: torch.dtype
) -> None:
    words = rf"cuFFT only supports dimensions whose sizes are powers of two when .*size of\[{sizes}\]"
    if way == "rfft" and dtype.is_complex:
        return
    for transform in (getattr(torch.fft, way), getattr(torch._refs.fft, way)):
        with pytest.raises(RuntimeError, match=words):
            transform(torch.ones(3, 6, device="cuda").to(dtype))
        side = {} if way == "fftn" else {"n": 4}
        assert transform(torch.ones(2, 4, device="cuda").to(dtype), **side).device == CUDA


def test_generators_have_an_offset() -> None:
    torch.cuda._set_rng_state_offset(64)
    assert torch.cuda._get_rng_state_offset() == 64
    torch.cuda.manual_seed(1)
    assert torch.cuda._get_rng_state_offset() == 0
    assert torch.Generator("cuda").get_offset() == 0


def test_events_belong_to_a_device_and_have_no_number_before_they_are_recorded() -> None:
    one, other = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert one.cuda_event == 0
    with torch.cuda.device(0):
        one.record()
    with torch.cuda.device(1):
        other.record()
    assert one.cuda_event != other.cuda_event
    with pytest.raises(RuntimeError):
        one.elapsed_time(other)


def test_facts_of_the_driver_have_their_shape() -> None:
    with pytest.raises(torch.cuda.CudaError, match=r"out of memory \(2\)"):
        torch.cuda.check_error(2)
    torch.cuda.check_error(0)
    uuids = [str(torch.cuda.get_device_properties(index).uuid) for index in range(2)]
    assert [len(uuid) for uuid in uuids] == [36, 36]
    assert uuids[0] != uuids[1]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torch.empty(2**50, device="cuda:1"),
        lambda: torch.ones(2**40, 1, device="cuda:1").expand(-1, 2**20).contiguous(),
        lambda: torch.ones(1, device="cuda:1").repeat(2**48),
    ],
)
def test_more_memory_than_the_host_has_is_refused_in_cudas_words(ask: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(
        torch.OutOfMemoryError, match=r"CUDA out of memory. Tried to allocate .* GiB. GPU 1 has a total"
    ):
        ask()
    assert min(torch.cuda.mem_get_info(1)) >= 0
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
        torch.empty(2**50)


def test_a_narrow_copy_is_checked_as_a_view_is() -> None:
    x = torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError, match=r"narrow\(\): length must be non-negative"):
        torch.narrow_copy(x, 0, 0, -1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.narrow_copy(x, 3, 0, 1)
    assert torch.narrow_copy(x, 0, 1, 2).device == CUDA


@pytest.mark.parametrize("way", ["explain", "export"])
def test_dynamo_traces_a_program_of_a_device_by_other_ways_than_compile(way: str) -> None:
    class Joined(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, torch.zeros(2, device=x.device)])

    x = torch.ones(2, device="cuda")
    with warnings.catch_warnings(action="ignore"):
        if way == "explain":
            assert torch._dynamo.explain(Joined())(x).graph_break_count == 0
        else:
            assert torch.export.export(Joined(), (x,), strict=True).module()(x).device == CUDA


def test_elements_that_a_loop_reads_and_writes_are_seen_by_a_recording_and_by_other_modes() -> None:
    def loop() -> float:
        x[1] = 3
        return x[0].item() + float(x[1]) + int(x[2]) + bool(x[0])

    x = torch.ones(3, device="cuda")
    assert loop() == 6
    with Ops(lambda func, args, kwargs: func._opname) as ops:
        assert loop() == 6
    assert ops.seen.count("_local_scalar_dense") >= 3
    assert {"fill_", "copy_"} & set(ops.seen)
    assert x.device == CUDA
    weight = nn.Parameter(x)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        weight[0] = 1


def test_a_warning_of_a_value_that_is_read_names_the_line_of_the_program(recwarn: pytest.WarningsRecorder) -> None:
    torch.set_warn_always(True)
    float(torch.ones((), device="cuda", requires_grad=True))
    assert [each.filename for each in recwarn if "to a scalar" in str(each.message)] == [__file__]


def test_a_function_from_before_the_simulation_may_name_a_device_in_its_annotations() -> None:
    script = torch.jit.script(on_a_device)
    assert script(torch.ones(2, device="cuda:1")).device == SECOND


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])

    def forward(self, x: torch.Tensor, times: int = 2) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        steps = torch.arange(2).to(x.device, torch.float32) + torch.tensor([0.5], device=x.device)
        if x.is_cuda:
            steps = steps + torch.ones(2).type_as(x)
        return x + steps.to(device=x.device) * times


def to_a_device(x: torch.Tensor, device: torch.device, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.arange(3).to(device).to(x) + torch.zeros(3).to(device=device, dtype=dtype)


def names_of_devices(x: torch.Tensor) -> str:
    there = x.cpu() if x.device.type == "cuda" else x.cuda()
    return str(x.device) + str(x.get_device()) + str(there.device)


def test_a_script_asks_a_tensor_for_its_device_and_moves_others_there() -> None:
    x = torch.ones(2, device="cuda:1")
    assert torch.jit.script(to_a_device)(x, device=SECOND).device == SECOND
    assert torch.jit.script(names_of_devices)(x) == "cuda:11cpu"
    assert torch.jit.script(names_of_devices)(x.cpu()) == "cpu-1cuda:0"
    model = torch.jit.script(Scripted()).to("cuda:1")
    for _ in range(3):  # the interpreter compiles anew what it has seen
        out = model(x, times=3)
        out.sum().backward()
        assert out.device == SECOND
    assert torch.equal(out.cpu(), model(x, 3).cpu())
    with torch.no_grad():
        assert torch.jit.freeze(model.eval())(x).device == SECOND
    assert torch.jit.trace(model, (x,))(x).device == SECOND


def test_what_a_script_saves_and_shows_is_as_it_was_compiled() -> None:
    model = torch.jit.script(Scripted()).to("cuda")
    model(torch.ones(2, device="cuda"))
    kept = io.BytesIO()
    torch.jit.save(model, kept)
    assert b"devtrace" not in kept.getvalue()
    assert not re.search(r"devtrace\.|src/devtrace", model.code + str(model.graph))
    loaded = torch.jit.load(io.BytesIO(kept.getvalue()), map_location="cuda:1")
    assert loaded(torch.ones(2, device="cuda:1")).device == SECOND


def test_an_error_in_a_script_has_the_words_of_its_operator() -> None:
    model = torch.jit.script(Scripted()).to("cuda")
    with pytest.raises(RuntimeError, match=r"(?s)in the TorchScript interpreter.*mat1 is on cpu, different from other"):
        model(torch.ones(2))
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'often'"):
        model(torch.ones(2, device="cuda"), often=2)
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        model()


@pytest.mark.parametrize(
    "call",
    [
        lambda whole, far: whole.div_(far),
        lambda whole, far: torch._foreach_div_([whole], [far]),
        lambda whole, far: whole.mul_(far.float()),
        lambda whole, far: torch.atan2(far, far, out=whole),
    ],
)
def test_a_result_that_does_not_fit_is_refused_before_the_device_of_what_is_read(call: Callable[..., Any]) -> None:
    """TensorIterator goes from operand to operand, and the result comes first."""
    with pytest.raises(RuntimeError, match=r"^result type Float can't be cast to the desired"):
        call(torch.ones(2, dtype=torch.uint8, device="cuda:0"), torch.ones(2, dtype=torch.uint8, device="cuda:1"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sparse_halves_are_added(dtype: torch.dtype) -> None:
    points = of_points().to(dtype)
    assert (points - points).to_dense().tolist() == [0, 0, 0, 0]
    assert (points + points).device == CUDA
    assert points.add_(points).to_dense().tolist() == [2, 0, 4, 0]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_halves_are_multiplied(layout: str, dtype: torch.dtype) -> None:
    table = torch.tensor([[0.0, 2.0], [3.0, 0.0]], device="cuda", dtype=dtype)
    sparse = getattr(table, layout)()
    products = [sparse @ sparse, sparse @ table, torch.addmm(torch.zeros_like(table), sparse, table)]
    assert [each.to_dense().tolist() for each in products] == [[[6, 0], [0, 6]]] * 3
    assert {(each.dtype, each.device) for each in products} == {(dtype, CUDA)}
    assert (sparse @ table[0]).tolist() == [4, 0]


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("product", "added"), [(torch.mm, False), (torch.bmm, False), (torch.addmm, True), (torch.baddbmm, True)]
)
def test_a_product_of_halves_is_given_in_the_dtype_that_is_asked_for(
    product: Any, added: bool, narrow: torch.dtype
) -> None:
    shape = (2, 2) if product in (torch.mm, torch.addmm) else (1, 2, 2)
    x = torch.full(shape, 1 + 2**-7, device="cuda", dtype=narrow)
    given = (torch.zeros(shape, device="cuda"), x, x) if added else (x, x)
    out = torch.empty(0, device="cuda")
    made = product(*given, out_dtype=torch.float32)
    assert torch.equal(made, x.float() @ x.float())  # which no half can hold
    assert (made.device, made.dtype) == (CUDA, torch.float32)
    assert product(*given, out_dtype=torch.float32, out=out) is out
    assert torch.equal(out, made)
    assert product(*(each.to(narrow) for each in given), out_dtype=narrow).dtype is narrow
    with pytest.raises(NotImplementedError):  # the host has none of them
        product(*(each.cpu() for each in given), out_dtype=torch.float32)
    with pytest.raises(RuntimeError, match="on the same device"):
        product(*given[:-1], x.cpu(), out_dtype=torch.float32)


def test_no_class_is_read_where_their_number_is_given() -> None:
    """On the CPU alone `one_hot` compares the least and the most class with the number, for which it reads both."""
    classes = torch.tensor([[0, 2], [1, 1]], device="cuda:1")
    by_name: Any = {"input": classes, "num_classes": 3}
    torch.cuda.set_sync_debug_mode("error")
    made = [functional.one_hot(classes, 3), functional.one_hot(**by_name)]
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        functional.one_hot(classes)
    torch.cuda.set_sync_debug_mode("default")
    expected = functional.one_hot(classes.cpu(), 3)
    assert all((each.device, each.dtype) == (SECOND, torch.int64) for each in made)
    assert all(torch.equal(each.cpu(), expected) for each in made)
    assert functional.one_hot(classes[0, 0], 3).tolist() == [1, 0, 0]
    assert functional.one_hot(classes[:0], 3).shape == (0, 2, 3)


def test_where_classes_are_counted_the_most_is_read_once() -> None:
    with devtrace.record() as recording:
        classes = torch.tensor([0, 2, 1], device="cuda")
        assert functional.one_hot(classes, 3).device == CUDA
        assert functional.one_hot(classes).shape == (3, 3)
    assert [op.name for op in recording.trace.ops if op.kind == "sync"] == ["aten._local_scalar_dense"]


@pytest.mark.parametrize(
    ("classes", "given", "kind", "words"),
    [
        ([0, 3], (3,), RuntimeError, "Class values must be smaller than num_classes"),
        ([0, -1], (), RuntimeError, "Class values must be non-negative"),
        ([-2], (), RuntimeError, "Class values must be non-negative"),
        ([0, 1], (0,), RuntimeError, "num_classes should be positive"),
        ([0.5], (3,), RuntimeError, "only applicable to index tensor of type LongTensor"),
        ([], (), RuntimeError, "Can not infer total number of classes from empty tensor"),
        ([0, 1], (True,), TypeError, "must be int, not bool"),
        ([0, 1], (3, 4), TypeError, "but 3 were given"),
    ],
)
def test_classes_that_are_none_are_refused_in_torchs_words(
    classes: list[float], given: tuple[Any, ...], kind: type[Exception], words: str
) -> None:
    labels = torch.tensor(classes, device="cuda", dtype=None if classes else torch.int64)
    with pytest.raises(kind, match=words) as raised:
        functional.one_hot(labels, *given)
    assert [each.name for each in raised.traceback][1:] == []
    assert raised.value.__context__ is None


def test_one_hot_is_torchs_own_to_what_looks_on() -> None:
    classes = torch.tensor([0, 2, 1], device="cuda")
    expected = [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert [node.target for node in torch.fx.symbolic_trace(_three_classes).graph.nodes][1] is torch._C._nn.one_hot
    for run in (torch.jit.script(_three_classes), torch.jit.trace(_three_classes, classes)):
        assert run(classes).device == CUDA
        assert run(classes).tolist() == expected
    with torch.inference_mode():
        assert _three_classes(classes).tolist() == expected
    assert torch.func.vmap(_three_classes)(classes[None])[0].tolist() == expected


def _three_classes(classes: torch.Tensor) -> torch.Tensor:
    return functional.one_hot(classes, 3)


@pytest.mark.parametrize("number", [1, 2.5, 1j])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize(
    "change",
    [
        lambda x, number: x + number,
        lambda x, number: number - x,
        lambda x, number: x * number,
        lambda x, number: number / x,
        lambda x, number: x == number,
    ],
)
def test_a_batch_takes_a_number(change: Callable[[Any, Any], Any], dtype: torch.dtype, number: complex) -> None:
    """Dtypes are promoted by a tensor that torch.func makes of it: a mode is handed the number."""
    numbers = torch.tensor([1, 2, 8], dtype=dtype)
    expected = change(numbers, number)
    got = torch.vmap(lambda each: change(each, number))(numbers.cuda())
    assert (got.device, got.dtype, got.tolist()) == (CUDA, expected.dtype, expected.tolist())


def test_a_batch_of_derivatives_takes_numbers() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device="cuda")
    slopes = torch.vmap(torch.func.grad(lambda value: value**3 + 1))(x)
    assert (slopes.device, slopes.tolist()) == (CUDA, [3.0, 12.0, 27.0])
    assert torch.func.hessian(lambda value: (value**2 + 1).sum() * 3)(x).tolist() == (torch.eye(3) * 6).tolist()
    assert torch.vmap(lambda value: value + 1)(torch.zeros(2)).device.type == "cpu"
