"""Models whose parts accelerate put on devices: its hooks bring inputs along, and no move takes such a model whole."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from devtrace.diagnosis.findings import Finding
from dispatching import dispatch, offload
from failing import both, culprit_of, edits_of, explained, report_of


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(torch.relu(self.body(x)))
        return scores


class Residual(Net):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = self.body(x)
        y: torch.Tensor = self.last(skip) + skip
        return y


class Decayed(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.body(x)) + self.head.bias.norm()
        return scores


def a_part_that_left_its_hooks_device() -> None:
    net = dispatch(Net(), {"body": 0, "head": 1})
    net.get_submodule("head").cuda(0)
    net(torch.rand(2, 8))


def a_part_without_a_hook() -> None:
    net = dispatch(Net(), {"body": 0, "head": 1})
    net.head = nn.Linear(8, 3)
    net(torch.rand(2, 8))


def a_shortcut_between_parts() -> None:
    dispatch(Residual(), {"body": 0, "last": 1, "head": 1})(torch.rand(2, 8))


def a_parameter_that_waits_elsewhere() -> None:
    net = offload(Decayed())
    net(torch.rand(2, 8))


def test_a_part_that_left_the_device_of_its_hook_goes_back_alone() -> None:
    found = report_of(a_part_that_left_its_hooks_device, simulate="cuda:2").findings[0]
    assert "A hook of accelerate moves the inputs of `net.head` to cuda:1." in found.message
    assert not [line for line in edits_of(found) if line.startswith("net.to(")]
    assert 'net.head.to("cuda:1")' in found.help


def test_a_part_that_came_after_the_hooks_is_moved_alone() -> None:
    for found in (
        report_of(a_part_without_a_hook, simulate="cuda:2").findings[0],
        explained(a_part_without_a_hook, simulate="cuda:2"),
    ):
        assert edits_of(found) == ["net.head = nn.Linear(8, 3).to(next(net.parameters()).device)"]


def test_where_a_module_computes_with_parts_of_two_devices_what_the_first_gave_is_moved() -> None:
    for found in (
        report_of(a_shortcut_between_parts, simulate="cuda:2").findings[0],
        explained(a_shortcut_between_parts, simulate="cuda:2"),
    ):
        assert culprit_of(found).name == "skip"
        assert edits_of(found) == ["skip = skip.to(next(self.last.parameters()).device)"]


def test_a_parameter_whose_data_a_hook_has_is_read_while_its_module_runs() -> None:
    found = report_of(a_parameter_that_waits_elsewhere, simulate="cuda:2").findings[0]
    assert "The weights of `net.head` wait on meta: a hook moves them only during a call" in found.message
    assert found.help == "call `net.head(...)`, whose hook brings the weights, or compute this in its own forward"
    assert not found.edits


class Lend:
    """A hook as diffusers has it: the module waits on the CPU, and computes on a GPU."""

    def __init__(self, module: nn.Module) -> None:
        self.execution_device, self.module, self.forward = torch.device("cuda:0"), module, module.forward

    def __call__(self, *given: torch.Tensor) -> torch.Tensor:
        self.module.to("cuda:0")
        out: torch.Tensor = self.forward(*(each.to("cuda:0") for each in given))
        self.module.to("cpu")
        return out


def lent(module: nn.Module) -> nn.Module:
    hook = Lend(module)
    vars(module).update(_hf_hook=hook, forward=hook)
    return module


def a_module_that_only_waits_on_the_cpu() -> None:
    encoder = lent(nn.Linear(8, 8))
    device = next(encoder.parameters()).device
    noise = torch.randn(2, 8, device=device)
    torch.add(encoder(torch.ones(2, 8)), noise)


@both
def test_where_a_module_waits_is_not_where_its_hook_computes(found: Callable[[Callable[[], None]], Finding]) -> None:
    error = found(a_module_that_only_waits_on_the_cpu)
    assert culprit_of(error).name == "noise"
    assert "asked `next(encoder.parameters()).device`, which says where the weights of `encoder` wait" in error.message
    assert edits_of(error) == ["noise = torch.randn(2, 8, device=encoder._hf_hook.execution_device)"]


def a_layer_of_a_module_that_waits() -> None:
    encoder = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    lent(encoder)
    encoder[0](torch.ones(2, 8, device="cuda:0"))


@both
def test_a_layer_that_runs_past_its_modules_hook_is_called_through_the_module(
    found: Callable[[Callable[[], None]], Finding],
) -> None:
    error = found(a_layer_of_a_module_that_waits)
    assert error.cause == "asked-at-rest"
    assert error.help == "call `encoder(...)`, whose hook brings the weights, or compute this in its own forward"
    assert not error.edits
