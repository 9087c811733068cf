"""Training on simulated devices: the CPU's values, gradients where they belong, mixed precision, several devices."""

from __future__ import annotations

import copy
import io
import warnings
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import devtrace

CUDA = torch.device("cuda:0")
OTHER = torch.device("cuda:1")


def fit(device: str, optimizer: type[torch.optim.Optimizer], **options: Any) -> list[float]:
    """A few steps of a model with dropout, all random numbers from one seed."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.LayerNorm(16), nn.Linear(16, 3)).to(device)
    update = optimizer(model.parameters(), lr=0.05, **options)  # type: ignore[call-arg]
    losses = []
    for _ in range(4):
        logits = model(torch.randn(8, 6).to(device))
        loss = functional.cross_entropy(logits, torch.randint(0, 3, (8,), device=device))
        update.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        losses.append(loss.item())
    return losses


FUSED = ("SGD", "Adam", "AdamW")
OPTIMIZERS = (*FUSED, "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax")


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [*product(OPTIMIZERS, ({"foreach": False}, {"foreach": True})), *product(FUSED, ({"fused": True},))],
)
def test_training_gives_the_values_of_the_cpu_bit_for_bit(optimizer: str, options: dict[str, bool]) -> None:
    kind = vars(torch.optim)[optimizer]
    plain = fit("cpu", kind, **options)
    with devtrace.simulate("cuda:1"):
        assert fit("cuda:0", kind, **options) == plain


def split(first: str, second: str) -> list[float]:
    """A model whose halves may live on two devices."""
    torch.manual_seed(0)
    left = nn.Sequential(nn.Linear(6, 8), nn.Tanh()).to(first)
    right = nn.Sequential(nn.Dropout(0.1), nn.Linear(8, 2)).to(second)
    update = torch.optim.Adam([*left.parameters(), *right.parameters()], lr=0.05, foreach=False)
    losses = []
    for _ in range(4):
        loss = right(left(torch.randn(5, 6).to(first)).to(second)).pow(2).mean()
        update.zero_grad()
        loss.backward()
        update.step()
        losses.append(loss.item())
    return losses


def test_a_model_split_over_two_devices_gives_the_values_of_the_cpu() -> None:
    plain = split("cpu", "cpu")
    with devtrace.simulate("cuda:2"):
        assert split("cuda:0", "cuda:1") == plain


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_draws_the_same_numbers_again(reentrant: bool) -> None:
    def run(device: str) -> list[float]:
        torch.manual_seed(0)
        block = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4)).to(device)
        x = torch.randn(3, 4).to(device).requires_grad_()
        total = checkpoint(block, checkpoint(block, x, use_reentrant=reentrant), use_reentrant=reentrant).sum()
        total.backward()
        after = torch.rand(2, device=device)
        grads = [value for p in block.parameters() if p.grad is not None for value in p.grad.flatten().tolist()]
        return [total.item(), *grads, *after.tolist()]

    plain = run("cpu")
    with devtrace.simulate("cuda:1"):
        assert run("cuda:0") == plain


@pytest.mark.parametrize(
    "layer",
    [
        lambda: nn.LSTM(3, 4, 2),
        lambda: nn.GRU(3, 4),
        lambda: nn.TransformerEncoderLayer(3, 3, 8),
        lambda: nn.Conv1d(2, 3, 1),
        lambda: nn.BatchNorm1d(2),
        lambda: nn.Bilinear(3, 3, 2),
    ],
)
def test_layers_give_the_values_and_gradients_of_the_cpu(layer: Any) -> None:
    def run(device: str) -> list[list[float]]:
        torch.manual_seed(0)
        module = layer().to(device)
        x = torch.randn(4, 2, 3).to(device).requires_grad_()
        out = module(x, x) if isinstance(module, nn.Bilinear) else module(x)
        out = out[0] if isinstance(out, tuple) else out
        out.square().sum().backward()
        tensors = [out, x.grad, *(parameter.grad for parameter in module.parameters())]
        assert {str(tensor.device) for tensor in tensors} == {device}
        return [tensor.flatten().tolist() for tensor in tensors]

    plain = run("cpu")
    with devtrace.simulate("cuda:2"):
        assert run("cuda:1") == plain


def test_a_copy_is_undone_in_backward_also_twice(two: None) -> None:
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    x.to("cuda:1", torch.float32).sum().backward()
    assert x.grad is not None
    assert (x.grad.device, x.grad.dtype) == (torch.device("cpu"), torch.float64)
    y = torch.rand(3, device="cuda:0", requires_grad=True)
    (slope,) = torch.autograd.grad(y.to("cuda:1").pow(3).sum(), y, create_graph=True)
    assert slope.device == CUDA
    slope.sum().backward()
    assert torch.equal(y.grad, 6 * y)  # type: ignore[arg-type]


class Doubled(torch.autograd.Function):
    """Sees its gradient on the device of its tensor, and may not mix in a host tensor."""

    seen: list[torch.device]
    spoiled = False

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, unused: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(x)
        return x * 2, unused * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        Doubled.seen = [grads[0].device, grads[1].device, ctx.saved_tensors[0].device]
        return grads[0] * 2 + (torch.zeros(3) if Doubled.spoiled else 0), grads[1]


def test_a_function_of_the_program_gets_gradients_where_its_tensors_are(
    two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = (torch.rand(3, device=OTHER, requires_grad=True) for _ in range(2))
    Doubled.apply(x, y)[0].sum().backward()  # type: ignore[no-untyped-call]
    assert Doubled.seen == [OTHER, OTHER, OTHER]
    monkeypatch.setattr(Doubled, "spoiled", True)
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:1 and cpu!"):
        Doubled.apply(x, y)[0].sum().backward()  # type: ignore[no-untyped-call]


def test_a_number_on_the_host_that_learns_gets_its_gradient_there() -> None:
    temperature = nn.Parameter(torch.tensor(2.0))
    update = torch.optim.Adam([temperature], lr=0.1)
    seen = []
    with devtrace.simulate("cuda:1"):
        scores = torch.arange(3.0, device=CUDA)
        for _ in range(3):
            update.zero_grad()
            scale = temperature.exp()
            (scores * scale + temperature).sum().backward()
            assert temperature.grad is not None
            seen.append((temperature.grad.device.type, temperature.grad.item()))
            update.step()
        (direct,) = torch.autograd.grad((scores * temperature).sum(), temperature)
        assert direct.device.type == "cpu"
        assert copy.deepcopy(temperature).grad_fn is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.save(temperature, io.BytesIO())
    expected = nn.Parameter(torch.tensor(2.0))
    update = torch.optim.Adam([expected], lr=0.1)
    for device, gradient in seen:
        update.zero_grad()
        (torch.arange(3.0) * expected.exp() + expected).sum().backward()
        assert expected.grad is not None
        assert (device, gradient) == ("cpu", expected.grad.item())
        update.step()


def test_hooks_see_the_device(one: None) -> None:
    model = nn.Linear(3, 2).cuda()
    seen: list[torch.device] = []
    model.register_forward_hook(lambda _, inputs, output: seen.append(output.device))
    model.weight.register_hook(lambda grad: seen.append(grad.device))
    model.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.device))
    model(torch.ones(1, 3, device="cuda"))[:, [0]].sum().backward()
    assert seen == [CUDA] * 3


def test_autocast_casts_tensors_of_the_device_by_cudas_lists(one: None) -> None:
    x = torch.rand(4, 4, device="cuda")
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda")
        assert x.mm(x).dtype is torch.float16
        assert functional.linear(x, x).dtype is torch.float16
        assert x.half().exp().dtype is torch.float32
        assert functional.softmax(x.half(), 0).dtype is torch.float32
        assert x.half().sum().dtype is torch.float32
        assert x.half().norm().dtype is torch.float32
        assert functional.mse_loss(x.half(), x.half()).dtype is torch.float32
        assert torch.addcmul(x, x.half(), x).dtype is torch.float32
        assert torch.relu(x.half()).dtype is torch.float16
        assert x.double().mm(x.double()).dtype is torch.float64
        assert torch.rand(4, 4).mm(torch.rand(4, 4)).dtype is torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            functional.binary_cross_entropy(x, x)
        with torch.autocast("cuda", enabled=False):
            assert x.mm(x).dtype is torch.float32
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert x.mm(x).dtype is torch.bfloat16
    assert x.mm(x).dtype is torch.float32


def test_autocast_leaves_the_gradients_in_the_precision_of_the_parameters(one: None) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)).cuda()
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    scales = []
    for _ in range(3):
        with torch.autocast("cuda"):
            loss = model(torch.randn(3, 4, device="cuda")).float().pow(2).mean()
        update.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(update)
        assert {(str(p.grad.device), p.grad.dtype) for p in model.parameters()} == {("cuda:0", torch.float32)}  # type: ignore[union-attr]
        scaler.step(update)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [1024.0] * 3  # nothing overflowed


def test_autocast_is_as_before_after_a_simulation() -> None:
    with devtrace.simulate("cuda:1"), torch.autocast("cuda"):
        torch.rand(2, 2, device="cuda").mm(torch.rand(2, 2, device="cuda"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.rand(2, 2).mm(torch.rand(2, 2)).dtype is torch.bfloat16
    assert torch.rand(2, 2).mm(torch.rand(2, 2)).dtype is torch.float32


def test_data_parallel_scatters_replicates_applies_and_gathers() -> None:
    def run(device: str, parallel: bool) -> tuple[list[list[float]], list[str]]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
        seen: list[str] = []
        model[2].register_forward_hook(lambda _, inputs, output: seen.append(str(output.device)))
        net = nn.DataParallel(model) if parallel else model
        update = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        for _ in range(2):
            out = net(torch.randn(6, 4).to(device))
            assert str(out.device) == device
            update.zero_grad()
            out.pow(2).mean().backward()
            update.step()
        assert {str(p.grad.device) for p in model.parameters()} == {device}  # type: ignore[union-attr]
        return [p.flatten().tolist() for p in model.parameters()], seen

    with warnings.catch_warnings(), devtrace.simulate("cuda:2"):
        warnings.simplefilter("error")
        parameters, seen = run("cuda:0", True)
    assert sorted(set(seen)) == ["cuda:0", "cuda:1"]
    plain, _ = run("cpu", False)
    for one, other in zip(parameters, plain, strict=True):
        assert one == pytest.approx(other, abs=1e-6)  # the batch is summed in two halves


def test_a_tensor_that_data_parallel_does_not_replicate_stays_behind() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = {"value": torch.ones(4, device="cuda:0")}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale["value"]

    with devtrace.simulate("cuda:2"):
        keeps = Keeps()
        keeps.anchor = nn.Parameter(torch.ones(1, device="cuda:0"))
        with pytest.raises(RuntimeError, match="cuda:1 and cuda:0") as caught:
            nn.DataParallel(keeps)(torch.ones(4, 4, device="cuda:0"))
        assert "Caught RuntimeError in replica 1" in str(caught.value)


def test_gradients_of_a_whole_batch_at_once_are_on_their_tensors_device() -> None:
    def answers(device: str) -> list[torch.Tensor]:
        x = torch.arange(3.0, device=device).requires_grad_()
        y = x.sin()
        (rows,) = torch.autograd.grad(y, x, torch.eye(3, device=device), is_grads_batched=True)
        jacobian = torch.autograd.functional.jacobian(torch.sin, x, vectorize=True)
        hessian = torch.autograd.functional.hessian(lambda x: (x.sin() * x).sum().exp(), x, vectorize=True)
        return [rows, jacobian, hessian]

    here = answers("cpu")
    with devtrace.simulate("cuda:1"):
        there = answers("cuda:0")
        assert [str(each.device) for each in there] == ["cuda:0"] * 3
        assert all(torch.equal(one, other.cpu()) for one, other in zip(here, there, strict=True))
        x = torch.ones(3, device="cuda:0", requires_grad=True)
        with pytest.raises(RuntimeError, match="expected device cuda:0 but got cpu"):
            torch.autograd.grad(x.sin(), x, torch.eye(3), is_grads_batched=True)
