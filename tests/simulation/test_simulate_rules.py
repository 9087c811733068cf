"""CUDA's device rules: the tables are torch's, and each mix is legal or raises in torch's words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import devtrace
import needs
from devtrace.simulation import autocast, rules
from folders import TESTS
from loaded import loaded

DATA = TESTS / "data"
SIMULATE = Path(rules.__file__).parent


def rows(name: str) -> list[list[str]]:
    lines = (SIMULATE / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def test_the_derived_tables_have_what_the_installed_torch_answers() -> None:
    needs.imported("yaml")
    by_hand = {row[0] for row in rows("cuda_rules_by_hand.tsv")}
    derived = loaded(DATA / "cuda_rules_from_torch.py").rows()
    made = {op: rules.Rule(check, wrapper) for op, check, wrapper in derived}
    assert {op: rule for op, rule in made.items() if op not in by_hand and rules.table().get(op) != rule} == {}
    policies = dict(loaded(DATA / "cuda_autocast_from_torch.py").rows())
    assert {name: policy for name, policy in policies.items() if autocast.policies().get(name) != policy} == {}


def test_every_row_by_hand_has_a_known_check_and_a_source() -> None:
    for row in rows("cuda_rules_by_hand.tsv"):
        assert len(row) == 4, row
        assert row[1] in rules.CHECKS, row
        assert row[3], row


def on(*shape: int) -> torch.Tensor:
    return torch.ones(shape, device="cuda:0")


def off(*shape: int) -> torch.Tensor:
    return torch.ones(shape)


INDEX, GENERATOR = torch.zeros(1, dtype=torch.long), torch.Generator()


class HostGradient(torch.autograd.Function):
    """Gives the gradient of its second tensor where a factory without a device makes it."""

    @staticmethod
    def forward(ctx: Any, factor: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * factor + y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return None, grad, torch.ones(3)


def applied(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = HostGradient.apply(2, x, y)  # type: ignore[no-untyped-call]
    return made


SIZES = "The size of tensor a (2) must match the size of tensor b (5)"
# What an H100 was asked is in tests/data/cuda_words.json and cuda_truth.json: here is the rest.
ILLEGAL: list[tuple[str, Callable[[], object]]] = [
    ("Expected a 'cuda' device type for generator but found 'cpu'", lambda: on(3).bernoulli_(generator=GENERATOR)),
    (
        "Expected a 'cpu' device type for generator but found 'cuda'",
        lambda: torch.rand(3, generator=torch.Generator("cuda")),
    ),
    ("found at least two devices, cuda:1 and cuda:0!", lambda: on(3).to("cuda:1") + on(3)),
    ("(when checking argument in method wrapper_CUDA_addmm)", lambda: nn.Linear(3, 3)(on(2, 3))),
    ("indexed tensor (cuda:0)", lambda: on(3)[INDEX.to("cuda:1")]),
    ("found at least two devices, cuda:0 and cpu!", lambda: on(3).index_put_((INDEX,), off(1))),
    (
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be",
        lambda: functional.conv1d(off(16, 1, 3), on(1, 1, 3)),
    ),
    (
        "got weight is on cuda:0, different from other tensors on cpu",
        lambda: nn.Conv2d(1, 2, 3).double().cuda()(off(1, 1, 4, 4).double()),
    ),
    ("got weight is on cpu, different from other tensors on cuda:0", lambda: nn.Conv1d(2, 2, 2, groups=2)(on(1, 2, 4))),
    ("Trying to pass too many CPU scalars to non-CPU kernel!", lambda: torch.add(off(), off(), out=on())),
    ("found at least two devices, cuda:0 and cpu!", lambda: torch.logical_xor(off(), on())),
    ("Expected out tensor to have device cuda:0, but got cpu instead", lambda: torch.sum(on(3, 2), 1, out=off(3))),
    ("Expected out tensor to have device cpu, but got cuda:0 instead", lambda: torch.mean(off(3, 2), 1, out=on(3))),
    ("got tensors is on cpu, different from other", lambda: torch.nested.as_nested_tensor([on(2), off(3)])),
    (
        "Could not run 'aten::histogram.bin_ct' with arguments from the 'CUDA'",
        lambda: off(4).histogram(4, weight=on(4)),
    ),
    ("expected out tensor to be on device cuda:0", lambda: torch.linalg.multi_dot([on(2, 2), on(2, 2)], out=off(0))),
    ("Expected all tensors to be on the same device", lambda: on(2, 2).long() @ off(2, 2).long()),  # and of this dtype
    ("Invalid device, must be cuda device", lambda: off(2).cuda("cpu")),
    ("result type ComplexHalf can't be cast to the desired output type Half", lambda: on(3).half().add_(1j)),
    ("Tried to allocate more than 1EB memory.", lambda: torch.empty(1 << 62, dtype=torch.int8, device="cuda:0")),
    (f"{SIZES} at non-singleton dimension 1", lambda: on(2, 2) + off(3, 5)),  # shapes are looked at before devices
    (SIZES, lambda: torch.where(on(2, 2) > 0, on(2, 2), off(3, 5))),
    (SIZES, lambda: on(2, 2).mul_(off(3, 5))),
    ("output with shape [1, 2] doesn't match the broadcast shape [2, 2]", lambda: on(1, 2).mul_(off(2, 2))),
    ("got mat2 is on cpu, different from other tensors on cuda:0", lambda: on(2, 2) @ off(3, 5)),
    ("on the same device", lambda: on(2).div_(on(2).to("cuda:1"))),
    ("on the same device", lambda: torch.ones(2, dtype=torch.int64).add_(on(2))),
    ("on the same device", lambda: torch.div(on(2), on(2).to("cuda:1"))),
    (
        "invalid gradient at index 1 - expected device cpu but got cuda:0",
        lambda: torch.autograd.backward([on(3).requires_grad_(), off(3).requires_grad_()], [on(3), on(3)]),
    ),
    (
        "Function HostGradientBackward returned an invalid gradient at index 1 - expected device cuda:0 but got cpu",
        lambda: applied(on(3).requires_grad_(), on(3).requires_grad_()).sum().backward(),
    ),
    ("expected tensor_indices_or_sections to be on cpu, but it's on cuda:0", lambda: on(3).tensor_split(INDEX.cuda())),
]


@pytest.mark.parametrize(("words", "mix"), ILLEGAL)
@pytest.mark.usefixtures("two")
def test_what_is_illegal_raises_in_torchs_words(words: str, mix: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError) as caught:
        mix()
    assert words in str(caught.value)


LEGAL: list[Callable[[], torch.Tensor]] = [
    lambda: on(3) * off(),
    lambda: off() - on(3),
    lambda: torch.where(on(3) > 0, off(), off()),
    lambda: on(3).index_put_((INDEX,), off()),
    lambda: torch.addcmul(on(3), on(3), off()),
    lambda: on(3).fill_(off()),
    lambda: torch._foreach_add([on(3), on(3)], [on(3), on(3)])[1],
]


@pytest.mark.parametrize("mix", LEGAL)
@pytest.mark.usefixtures("two")
def test_a_legal_mix_gives_a_tensor_of_the_device(mix: Callable[[], torch.Tensor]) -> None:
    assert mix().device == torch.device("cuda:0")


@pytest.mark.usefixtures("two")
def test_lists_on_several_devices_are_worked_off_in_pairs() -> None:
    tensors = [on(2), on(2).to("cuda:1"), off(2), off()]
    assert [str(t.device) for t in torch._foreach_mul(tensors, tensors)] == ["cuda:0", "cuda:1", "cpu", "cpu"]


@pytest.mark.usefixtures("two")
def test_a_gradient_without_dimensions_is_moved_to_its_tensor() -> None:
    x = on().requires_grad_()
    (x * 2).backward(off())
    assert x.grad is not None
    assert (x.grad.device, x.grad.item()) == (torch.device("cuda:0"), 2)


@pytest.mark.usefixtures("two")
def test_a_copy_to_the_host_may_come_from_anywhere() -> None:
    assert off(3).copy_(on(3) * 2).tolist() == [2, 2, 2]


def test_a_mix_with_the_device_meta_gets_the_answers_that_torch_gives_the_host() -> None:
    meta = torch.ones(2, 2, device="meta")
    with devtrace.simulate("cuda:1"):
        x = torch.ones(2, 2, device="cuda")
        for compute in (lambda: x + meta, lambda: nn.Linear(2, 2, device="meta")(x)):
            with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cuda:0!"):
                compute()
        assert (x @ meta).device == torch.device("cuda:0")
        assert (meta @ x).device.type == "meta"
