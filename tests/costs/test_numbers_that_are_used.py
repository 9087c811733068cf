"""What a value is used for after it was read: on the device again, to decide what the loop does, or to be kept."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from costs import GPU, descend, train, warnings, warns
from devtrace.costs.uses import counter, decides_the_loop
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Site
from failing import Text
from trees import parsed


def _a_peak_in_a_condition() -> None:
    for wave in torch.rand(14, 16, 8, device=GPU):
        peak = wave.max().item()
        torch.where(wave > 0.5 * peak, wave, 0)


def _a_product_in_the_line_that_reads(x: torch.Tensor) -> torch.Tensor:
    x = 2 * x / (x.detach().abs().amax().item() * 3 + len(x))
    return x.mean()


def _one_bound() -> None:
    for wave in torch.rand(14, 16, 8, device=GPU):
        loudest = float(wave[0].max())
        wave.clamp_(max=loudest)


@pytest.mark.parametrize(
    "program",
    [
        _a_peak_in_a_condition,
        partial(train, _a_product_in_the_line_that_reads, 14),
        _one_bound,
    ],
)
def test_a_number_that_the_device_computes_with_stays_a_tensor(program: Callable[[], None]) -> None:
    (found,) = warnings(program)
    assert found.count == 14
    assert "to compute with it on the device at test_numbers_that_are_used.py line" in found.message
    assert "use the tensor itself (`.detach()`) at test_numbers_that_are_used.py line" in found.help


def _a_weight_of_a_sum() -> None:
    total = torch.zeros(8, device=GPU)
    for x in torch.rand(14, 16, 8, device=GPU):
        amount = x.mean().item()
        total.add_(x[0], alpha=amount)


def _a_bound_beside_a_number() -> None:
    for x in torch.rand(14, 16, 8, device=GPU):
        x.clamp(0.1, x.mean().item())


def _a_quotient_of_two_that_were_read() -> None:
    quotients = {}
    for step, x in enumerate(torch.rand(14, 16, 8, device=GPU)):
        quotients[step] = (x.max() / 2).item() / (x.sum() / 3).item()


def _an_average_of_pythons() -> None:
    average, seen = 0.0, []
    for x in torch.rand(14, 16, 8, device=GPU):
        value = x.square().mean().item()
        average = 0.9 * average + 0.1 * value
        seen.append(average)


@pytest.mark.parametrize(
    "program",
    [_a_weight_of_a_sum, _a_bound_beside_a_number, _a_quotient_of_two_that_were_read, _an_average_of_pythons],
)
def test_a_number_that_has_to_be_one_is_not_called_needless_on_the_device(program: Callable[[], None]) -> None:
    assert all("use the tensor itself" not in each.help for each in warnings(program))


def _a_norm_that_is_clipped() -> None:
    net = nn.Linear(8, 4).to(GPU)
    for x in torch.rand(14, 16, 8, device=GPU):
        net(x).square().mean().backward()
        most = x.std()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm=2 * most.item())


def _a_loss_that_changes_its_form() -> None:
    net = nn.Linear(8, 8).to(GPU)
    for x in torch.rand(14, 16, 8, device=GPU):
        out = net(x)
        where = float((out.detach() - x).abs().median())
        nn.functional.huber_loss(out, x, delta=max(where, 0.1)).backward()


def _a_step_by_a_rate_of_the_device() -> None:
    weight, rate = torch.zeros(8, device=GPU), cast(float, torch.tensor(0.1, device=GPU))
    for x in torch.rand(14, 16, 8, device=GPU):
        weight.sub_(x.mean(0), alpha=rate)


def _rows_that_are_kept_short() -> None:
    for x in torch.rand(14, 16, 8, device=GPU):
        x.renorm(2, 0, 2 * x.mean())


@pytest.mark.parametrize(
    ("program", "function"),
    [
        (_a_norm_that_is_clipped, "clip_grad_norm_"),
        (_a_loss_that_changes_its_form, "huber_loss"),
        (_a_step_by_a_rate_of_the_device, "sub_"),
        (_rows_that_are_kept_short, "renorm"),
    ],
)
def test_a_number_that_torch_takes_in_each_step_cannot_wait_for_the_loops_end(
    program: Callable[[], None], function: str
) -> None:
    (found,) = warnings(program)
    assert f"to give it to `{function}`" in found.message
    assert found.help == (
        f"compute it every N steps, or write what `{function}` does with the tensor itself: it takes only a number"
    )


def test_a_whole_number_that_torch_takes_is_a_size() -> None:
    def program() -> None:
        for x in torch.randint(0, 9, (14, 16), device=GPU):
            nn.functional.one_hot(x, num_classes=int(x.max()) + 1)

    found = warnings(program)[0]
    assert "to know a size" in found.message
    assert "as a fixed upper bound" in found.help


@warns(
    message=Text("`plateau.step(loss.detach())` made the CPU wait for cuda:0 14 times"),
    help="set it every N steps, or once an epoch",
)
def test_a_scheduler_that_reads_each_loss_is_set_less_often() -> None:
    net = nn.Linear(8, 4).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    plateau = ReduceLROnPlateau(optimizer, patience=2)
    for x in torch.rand(14, 16, 8, device=GPU):
        loss = net(x).square().mean()
        descend(optimizer, loss)
        plateau.step(loss.detach())


@warns(message=Text("to decide a branch"), help=Text("check every N steps"))
def test_a_number_that_is_compared_later_is_read_to_decide() -> int:
    net, last, worse = nn.Linear(8, 4).to(GPU), 1e9, 0
    for x in torch.rand(14, 16, 8, device=GPU):
        loss = net(x).square().mean()
        loss.backward()
        now = float(loss.detach())
        worse = worse + 1 if now > last else 0
        last = now
    return worse


@warns(help="keep `loss.detach()` and read it after the loop, or every N steps")
def test_what_is_detached_is_not_detached_again() -> None:
    net, values = nn.Linear(8, 4).to(GPU), {}
    for step, x in enumerate(torch.rand(14, 16, 8, device=GPU)):
        loss = net(x).square().mean()
        loss.backward()
        values[step] = float(loss.detach())


def test_what_an_environment_answers_by_is_read_when_it_is_needed() -> None:
    class Thermostat:
        warmth = 0.5

        def heated(self, by: float) -> float:
            self.warmth += 0.1 * by
            return self.warmth

    def program() -> None:
        net, room = nn.Linear(1, 1).to(GPU), Thermostat()
        warmth = room.warmth
        for _ in range(14):
            power = net(torch.tensor([warmth], device=GPU)).square()
            warmth = room.heated(by=power.item())
            power.sum().backward()

    assert [each for each in warnings(program) if each.rule == "host-sync"] == []


@warns(help="keep `loss.detach()` and read them all together after the loop: `torch.stack(seen).tolist()`")
def test_a_list_that_is_added_to_keeps_tensors() -> None:
    net, seen = nn.Linear(8, 4).to(GPU), list[float]()
    for x in torch.rand(14, 16, 8, device=GPU):
        loss = net(x).square().mean()
        loss.backward()
        seen += [loss.item()]


LOOP = """
import math
import numpy as np
import torch
for step in range(9):
    {line}
"""


def found(line: str, read: str) -> SourceNode:
    """Return the code `read` of a line in a loop."""
    source = parsed(LOOP.format(line=line.replace("\n", "\n    ")))
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, ast.expr) and source.segment(node) == read]
    statement = source.statement(nodes[0])
    assert statement is not None
    return SourceNode(Code(source, Site("train.py", 1)), nodes[0], statement)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("if info.max() > 3: break", "info.max() > 3"),
        ("if inference_loss < 0.1: break", "inference_loss < 0.1"),
        ('if seen == "nan" or change < self.config.infer: break', "change < self.config.infer"),
        ("while left > 0: left -= 1", "left > 0"),
        ("value = x.max().item()\nif value < 1e-3: break", "x.max().item()"),
    ],
)
def test_a_value_decides_how_long_a_loop_runs(line: str, read: str) -> None:
    assert decides_the_loop(found(line, read))


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("if torch.isnan(loss): break", "torch.isnan(loss)"),
        ("if not math.isfinite(loss.item()): break", "loss.item()"),
        ("if loss != loss: break", "loss != loss"),
        ('if loss == float("inf"): break', 'loss == float("inf")'),
        ("if loss.item() == -np.inf: break", "loss.item()"),
        ("if loss < 0: print(step)", "loss < 0"),
    ],
)
def test_a_guard_against_what_never_is_decides_no_loop(line: str, read: str) -> None:
    assert not decides_the_loop(found(line, read))


@pytest.mark.parametrize(
    ("line", "read", "name"),
    [
        ("loss = train(step)\nprint(loss.item())", "loss.item()", "step"),
        ("for x, y in loader:\n    loss = train(x, y)\n    print(loss.item())", "loss.item()", ""),
        ("for x in loader: print(net(x).sum().item())", "net(x).sum().item()", ""),
        ("while queue:\n    loss = train(queue.pop())\n    print(loss.item())", "loss.item()", ""),
        ("for at, x in enumerate(loader):\n    loss = train(x)\n    print(loss.item())", "loss.item()", "at"),
        ("for x in loader:\n    loss = train(x)\n    seen += 1\n    print(loss.item())", "loss.item()", "seen"),
        ("for x in loader:\n    loss, total = train(x), total + 1\n    print(loss.item())", "loss.item()", ""),
        ("while True:\n    seen = seen + 1\n    loss = train()\n    print(loss.item())", "loss.item()", "seen"),
        ("for x in loader:\n    if x: seen += 1\n    print(loss.item())", "loss.item()", ""),
        ("for name, value in logs.items(): print(name, value.item())", "value.item()", "step"),
        ("for p in net.parameters():\n    norm = p.norm()\n    print(norm.item())", "norm.item()", ""),
    ],
)
def test_the_rounds_of_a_loop_are_counted_by_a_variable_of_that_loop(line: str, read: str, name: str) -> None:
    """Epochs count no batches: `if epoch % 100 == 0` would print in each step of the first one."""
    node = found(line, read)
    assert counter(node, node.node.func.value) == name  # type: ignore[attr-defined]
