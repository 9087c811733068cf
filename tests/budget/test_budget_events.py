"""What happens once, at a step that a budget leaves out, makes no finding that a full recording does not make.

The steps are drawn anew with each `LOOP_SEED` in the environment.
"""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import devtrace
from budgeted import differences
from budgeted import seen as recorded

pytestmark = pytest.mark.one_in(5)

GPU, OTHER = "cuda:0", "cuda:1"
STEPS = 60
OFF = range(12, 36)
"""Steps that are not recorded: six are, then come 32 that are not."""

Run = Any
"""What a loop has: model, optimizer, x, step, kept."""
Event = Callable[[Run], object]


def train(*, at: int = -1, once: Event | None = None, each: Event | None = None) -> None:
    """Train for some steps; do something once, and something at the end of each."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 2)).to(GPU)
    run = SimpleNamespace(model=model, optimizer=torch.optim.Adam(model.parameters()), x=torch.ones(5, 4), kept={})
    for run.step in range(STEPS):
        run.optimizer.zero_grad()
        run.loss = run.model(run.x.to(GPU)).pow(2).mean()
        run.loss.backward()
        run.optimizer.step()
        if once is not None and run.step == at:
            once(run)
        if each is not None:
            each(run)


def compared(program: Callable[[], object]) -> tuple[list[str], list[str]]:
    whole, short = recorded(program, None), recorded(program, 0.1)
    assert any("counted as repeating them" in note for note in short[2])
    return differences(whole, short)


def random_step(name: str) -> int:
    return random.Random(name + os.environ.get("LOOP_SEED", "")).choice(OFF)


# Something that happens once, and is found out at once or some steps later.


def replace_a_layer(run: Run) -> None:
    run.model[3] = nn.Linear(4, 2)


def replace_a_layer_and_move_it(run: Run) -> None:
    run.model[3] = nn.Linear(4, 2).to(GPU)


def change_the_batchs_device(run: Run) -> None:
    run.x = run.x.to(OTHER)
    run.model(run.x)


def swap_the_data(run: Run) -> None:
    run.model[0].bias.data = torch.zeros(4)


def swap_the_data_for_a_copy(run: Run) -> None:
    run.model[0].bias.data = run.model[0].bias.data.cpu()


def fail_and_go_on(run: Run) -> None:
    try:
        run.model(torch.rand(5, 4))
    except RuntimeError:
        run.kept["failed"] = True


def interrupt(run: Run) -> None:
    raise KeyboardInterrupt


def raise_an_error_of_ones_own(run: Run) -> None:
    raise ValueError("not about devices")


def evaluate_without_gradients(run: Run) -> None:
    with torch.no_grad():
        run.model.eval()
        run.model(run.x.to(GPU)).sum().item()
        run.model.train()


def evaluate_in_inference_mode(run: Run) -> None:
    with torch.inference_mode():
        run.model.eval()
        run.kept["out"] = run.model(run.x.to(GPU)).cpu()
        run.model.train()
    run.kept["out"] + run.model(run.x.to(GPU)).detach()


def load_a_state_instead(run: Run) -> None:
    state = {name: value.cpu() for name, value in run.model.state_dict().items()}
    run.model.load_state_dict(state, assign=True)


def copy_the_model(run: Run) -> None:
    run.kept["copy"] = copy.deepcopy(run.model).cpu()
    run.kept["copy"][0].weight + run.model[0].weight


def build_another_optimizer(run: Run) -> None:
    run.optimizer = torch.optim.SGD(run.model.parameters(), lr=0.1, momentum=0.9)


def keep_a_mask_as_an_attribute(run: Run) -> None:
    run.model.mask = torch.ones(2)
    run.model(run.x.to(GPU)) * run.model.mask


def keep_a_mask_as_a_buffer(run: Run) -> None:
    run.model.register_buffer("mask", torch.ones(2))
    run.model(run.x.to(GPU)) * run.model.mask


def keep_a_copy(run: Run) -> None:
    run.kept["saved"] = run.model[0].weight.detach().cpu()
    run.kept["saved"] + run.model[0].weight


def keep_numbers(run: Run) -> None:
    numbers = torch.from_numpy(np.ones(2, dtype=np.float32))
    run.model(run.x.to(GPU)) * numbers


def keep_a_gradient(run: Run) -> None:
    kept = run.model[0].weight.grad.cpu()
    run.model[0].weight.grad += kept


def set_the_default_device(run: Run) -> None:
    torch.set_default_device(OTHER)
    try:
        run.model(torch.ones(5, 4))
    finally:
        torch.set_default_device(None)


def train_another_model(run: Run) -> None:
    model = nn.Linear(4, 2).to(GPU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(torch.rand(3, 4).to(GPU)).sum()
        loss.backward()
        optimizer.step()
        loss.item()
    model(torch.rand(3, 4))


LONG = [
    replace_a_layer,
    replace_a_layer_and_move_it,
    change_the_batchs_device,
    swap_the_data,
    swap_the_data_for_a_copy,
    fail_and_go_on,
    interrupt,
    raise_an_error_of_ones_own,
    evaluate_without_gradients,
    evaluate_in_inference_mode,
    load_a_state_instead,
    copy_the_model,
    build_another_optimizer,
    keep_a_mask_as_an_attribute,
    keep_a_mask_as_a_buffer,
    keep_a_copy,
    keep_numbers,
    keep_a_gradient,
    set_the_default_device,
    train_another_model,
]
ONCE: dict[str, Event] = {each.__name__: each for each in LONG} | {
    "move_a_part": lambda run: run.model[0].cpu(),
    "move_all_to_another_device": lambda run: run.model.to(OTHER),
    "fail": lambda run: run.model(torch.rand(5, 4)),
    "load_a_state": lambda run: run.model.load_state_dict(copy.deepcopy(run.model.state_dict())),
    "add_a_hook": lambda run: run.model[0].register_forward_hook(lambda module, given, out: out + torch.ones(4)),
    "add_a_reading_hook": lambda run: run.model[0].register_forward_hook(
        lambda module, given, out: run.kept.setdefault(run.step, out.detach().cpu())
    ),
    "use_a_generator": lambda run: torch.rand(3, device=GPU, generator=torch.Generator()),
    "send_a_smaller_batch": lambda run: run.model(run.x[:3].to(GPU)).sum().item(),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_happens_once_leads_to_no_other_claim(name: str) -> None:
    wrong, _ = compared(lambda: train(at=random_step(name), once=ONCE[name]))
    assert wrong == []


LATER: dict[str, Event] = {
    "a_new_tensor": lambda run: torch.ones(4),
    "a_copy_of_a_weight": lambda run: run.model[0].weight.detach().cpu(),
    "a_view_of_the_batch": lambda run: run.x[0],
    "a_result": lambda run: run.model(run.x.to(GPU)).mean().cpu().expand(4),
    "a_list_of_numbers": lambda run: torch.tensor(run.loss.detach().expand(4).tolist()),
}


def kept_for_later(name: str, make: Event) -> Event:
    """Make a tensor at a step, and meet another device with it some steps later."""

    def each(run: Run) -> None:
        if run.step == random_step(name):
            run.kept["late"] = make(run)
        elif run.step == random_step(name) + 5:
            run.kept["late"] + run.model[0].weight.detach()

    return each


@pytest.mark.parametrize("name", LATER)
def test_a_tensor_that_was_made_unrecorded_leads_to_no_other_claim(name: str) -> None:
    wrong, _ = compared(lambda: train(each=kept_for_later(name, LATER[name])))
    assert wrong == []


def keep_a_copy_elsewhere(run: Run) -> None:
    run.kept["saved"] = run.model[0].weight.detach().to(OTHER)
    run.kept["saved"] + run.model[0].weight


a_weight_elsewhere = kept_for_later("a_weight_elsewhere", lambda run: run.model[0].weight.detach().to(OTHER))


@pytest.mark.parametrize("once", [keep_a_copy_elsewhere, a_weight_elsewhere], ids=["now", "later"])
def test_of_tensors_on_two_accelerators_the_one_that_was_made_unrecorded_has_no_cause(once: Event) -> None:
    _, found, _ = recorded(lambda: train(each=lambda run: once(run) if run.step >= OFF[0] else None), 0.1)
    (rule, *_), (cause, *_), _ = found[0]
    assert (rule, cause) == ("device-mismatch", "unknown")


# Something of each step, or of every twentieth.


def evaluate_now_and_then(run: Run) -> None:
    if run.step % 20 == 19:
        with torch.no_grad():
            run.model.eval()
            sum(run.model(run.x.to(GPU)).sum().item() for _ in range(3))
            run.model.train()


def log_now_and_then(run: Run) -> None:
    if run.step % 20 == 19:
        run.kept["log"] = f"{run.loss.item():.3f}"


def read_each_loss(run: Run) -> None:
    run.kept["last"] = run.loss.item()


def keep_an_average(run: Run) -> None:
    average = run.kept.setdefault("average", copy.deepcopy(run.model))
    with torch.no_grad():
        for mine, its in zip(average.parameters(), run.model.parameters(), strict=True):
            mine.mul_(0.9).add_(its, alpha=0.1)


def train_a_second_model(run: Run) -> None:
    if "second" not in run.kept:
        run.kept["second"] = nn.Linear(2, 2).to(GPU)
        run.kept["of second"] = torch.optim.SGD(run.kept["second"].parameters(), lr=0.1)
    run.kept["of second"].zero_grad()
    run.kept["second"](run.model(run.x.to(GPU)).detach()).sum().backward()
    run.kept["of second"].step()


def accumulate(run: Run) -> None:
    for _ in range(3):
        run.model(run.x.to(GPU)).sum().backward()


def run_a_checkpoint(run: Run) -> None:
    checkpoint(run.model, run.x.to(GPU), use_reentrant=False).sum().backward()


def run_a_reentrant_checkpoint(run: Run) -> None:
    checkpoint(run.model, run.x.to(GPU).requires_grad_(), use_reentrant=True).sum().backward()


def attach_a_layer_anew(run: Run) -> None:
    run.model[3] = run.model[3]


def take_a_slice(run: Run) -> None:
    x = run.x.to(GPU)
    for layer in run.model[:2]:
        x = layer(x)


EACH = [
    evaluate_now_and_then,
    log_now_and_then,
    read_each_loss,
    keep_an_average,
    train_a_second_model,
    accumulate,
    run_a_checkpoint,
    run_a_reentrant_checkpoint,
    attach_a_layer_anew,
    take_a_slice,
]


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.__name__)
@pytest.mark.parametrize("once", [None, replace_a_layer, ONCE["fail"]], ids=["nothing", "replace", "fail"])
def test_in_a_loop_of_any_form_the_same_is_claimed(each: Event, once: Event | None) -> None:
    wrong, _ = compared(lambda: train(each=each, once=once, at=random_step(each.__name__)))
    assert wrong == []


def attach_another_layer_late(run: Run) -> None:
    layers = run.kept.setdefault("layers", [run.model[3], nn.Linear(4, 2)])
    run.model[3] = layers[run.step >= random_step("another layer")]


def attach_a_layer_that_was_moved_away(run: Run) -> None:
    layer = run.kept.setdefault("layer", run.model[3])
    if run.step == random_step("moved away"):
        layer.to(OTHER)
    run.model[3] = layer


@pytest.mark.parametrize("each", [attach_another_layer_late, attach_a_layer_that_was_moved_away])
def test_of_a_layer_that_is_attached_in_each_step_nothing_else_is_claimed(each: Event) -> None:
    wrong, _ = compared(lambda: train(each=each))
    assert wrong == []


def test_a_module_that_moves_in_each_step_is_recorded_in_full() -> None:
    program = lambda: train(each=lambda run: run.model.to(GPU))  # noqa: E731
    whole, short = recorded(program, None), recorded(program, 0.1)
    assert differences(whole, short) == ([], [])


def test_after_a_break_the_same_is_claimed() -> None:
    def program() -> None:
        model = nn.Linear(4, 2).to(GPU)
        x = torch.ones(3, 4, device=GPU)
        for step in range(STEPS):
            loss = model(x).sum()
            if step == random_step("break"):
                break
        mask = torch.ones(2)
        loss.item()
        model(x) * mask

    wrong, _ = compared(program)
    assert wrong == []


class Careful(torch.optim.Optimizer):
    """Reads a value in its step."""

    def __init__(self, parameters: Iterator[nn.Parameter]) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for each in group["params"]:
                if each.grad.norm().item() < 10:
                    each.sub_(each.grad, alpha=0.01)


def test_an_optimizer_that_reads_in_its_step_is_found_as_ever() -> None:
    def program() -> None:
        model = nn.Linear(4, 2).to(GPU)
        optimizer = Careful(model.parameters())
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.ones(3, 4, device=GPU)).sum().backward()
            optimizer.step()

    assert compared(program) == ([], [])


def test_what_was_compiled_stays_so() -> None:
    compiled: list[Any] = []

    def backend(graph: Any, examples: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    def program() -> None:
        torch._dynamo.reset()
        layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        model, optimizer = torch.compile(layers, backend=backend), torch.optim.SGD(layers.parameters(), lr=0.1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()

    program()
    plain = len(compiled)
    with devtrace.record(budget=0.1) as recording:
        program()
    assert recording.trace.truncated
    assert len(compiled) == 2 * plain


def test_a_model_in_distributed_data_parallel_is_found_as_ever(tmp_path: Path) -> None:
    def program() -> None:
        model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(STEPS):
            optimizer.zero_grad()
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            if step == random_step("parallel"):
                torch.ones(3, device=GPU) + torch.ones(3)

    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'job'}", rank=0, world_size=1)
    try:
        wrong, _ = compared(program)
    finally:
        torch.distributed.destroy_process_group()
    assert wrong == []
