"""Modules in a trace: their tree, their names, their calls, and where they were attached and moved."""

from __future__ import annotations

import copy
import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks

import devtrace
from devtrace.api.recording import record
from devtrace.recording.columns.module_notes import FEWEST_TO_SWEEP, Happening, ModuleNotes, pack_happening
from devtrace.recording.columns.process_history import history
from devtrace.recording.context import hooks, optimizers
from devtrace.recording.finish.history import ModuleHistory
from devtrace.trace.checks import broken_rule
from devtrace.trace.rows import Module, Site
from devtrace.trace.tables import TraceData


@pytest.fixture
def loaded() -> Iterator[None]:
    """`%load_ext devtrace`."""
    hooks.install()
    yield
    hooks.uninstall()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 2)
        self.spare = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(x))
        return out

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(x).sum()


def text(site: Site | None) -> str:
    return site.text if site else ""


def module(trace: TraceData, path: str) -> Module:
    (found,) = [module for module in trace.modules if module.path == path]
    assert isinstance(found, Module)
    return found


def test_the_tree_has_the_modules_that_did_not_run_too() -> None:
    net = Net()
    with devtrace.record() as recording:
        net(torch.rand(1, 4))
    rows = [(row.path, row.type, row.parent.path if row.parent else "", row.ran) for row in recording.trace.modules]
    assert rows == [
        ("net", "Net", "", 1),
        ("net.body", "Sequential", "net", 1),
        ("net.body.0", "Linear", "net.body", 1),
        ("net.body.1", "ReLU", "net.body", 1),
        ("net.head", "Linear", "net", 1),
        ("net.spare", "Linear", "net", 0),
    ]


def test_calls_nest_and_contain_their_ops() -> None:
    net = Net()
    with devtrace.record() as recording:
        net.train()(torch.rand(1, 4))
        net.eval()(torch.rand(1, 4))
    trace = recording.trace
    assert broken_rule(trace) is None
    outer = [call for call in trace.calls if call.parent is None]
    assert [call.training for call in outer] == [1, 0]
    assert [call.module.type for call in trace.calls if call.parent == outer[0]] == ["Sequential", "Linear"]
    heads = [op.name for op in trace.ops if op.module is not None and op.module.path == "net.head"]
    assert heads == ["aten.t", "aten.addmm"] * 2


def test_a_call_that_raises_ends() -> None:
    net = Net()
    with pytest.raises(RuntimeError), devtrace.record() as recording:
        net(torch.rand(1, 5))
    assert [call.end for call in recording.trace.calls] == [len(recording.trace.ops)] * 3
    assert broken_rule(recording.trace) is None


def test_a_method_called_by_name_shows_the_whole_model() -> None:
    def run() -> record:
        with devtrace.record() as recording:
            model = Net()
            model.loss(torch.rand(1, 4))
        return recording

    trace = run().trace
    assert [row.path for row in trace.modules][:3] == ["model", "model.body", "model.body.0"]
    assert module(trace, "model").ran == 0
    assert module(trace, "model.body").ran == 1


def test_a_variable_names_a_model_that_the_code_calls_otherwise() -> None:
    model = Net()

    def step(anything: nn.Module) -> None:
        anything(torch.rand(1, 4))

    with devtrace.record(namespace={"model": model}) as recording:
        step(model)
    assert recording.trace.modules[0].path == "model"
    with devtrace.record(namespace={}) as recording:
        step(model)
    assert recording.trace.modules[0].path == "anything"


def test_modules_that_one_loop_variable_calls_have_a_name_each() -> None:
    def run(parts: list[nn.Linear]) -> None:
        x = torch.rand(1, 4)
        for part in parts:
            x = part(x)

    stages = [nn.Linear(4, 4), nn.Linear(4, 4, bias=False)]
    with devtrace.record(namespace={"stages": stages}) as recording:
        run(stages)
    assert [row.path for row in recording.trace.modules] == ["stages[0]", "stages[1]"]
    with devtrace.record(namespace={"model": nn.ModuleDict({"up": stages[0], "down": stages[1]})}) as recording:
        run(stages)
    assert [row.path for row in recording.trace.modules] == ["model.up", "model.down"]
    with devtrace.record(namespace={}) as recording:
        run(stages)
    assert [row.path for row in recording.trace.modules] == ["part", "part#2"]
    named = {row.name for row in recording.trace.tensors if row.role == "parameter"}
    assert named == {"part.weight", "part.bias", "part#2.weight"}


def test_of_models_that_one_variable_named_in_turn_the_living_one_keeps_the_name() -> None:
    with devtrace.record(namespace={}) as recording:
        for width in (2, 3):
            model = nn.Linear(4, width)
            model(torch.rand(1, 4))
    rows = [(row.path, row.ran) for row in recording.trace.modules]
    assert rows == [("model#2", 1), ("model", 1)]


def test_a_part_that_was_called_first_joins_its_tree() -> None:
    net = Net()
    with devtrace.record() as recording:
        net.head(torch.rand(1, 4))
        net(torch.rand(1, 4))
    trace = recording.trace
    assert sorted(row.path for row in trace.modules).count("net.head") == 1
    head = module(trace, "net.head")
    assert head.parent == module(trace, "net")
    assert len([call for call in trace.calls if call.module == head]) == 2


def test_a_module_attached_later_joins_the_tree_at_its_line() -> None:
    net = Net()
    with devtrace.record() as recording:
        net(torch.rand(1, 4))
        net.head = nn.Linear(4, 3)
        net(torch.rand(1, 4))
    trace = recording.trace
    new = [row for row in trace.modules if row.path == "net.head"][-1]
    assert text(new.site).startswith("net.head")
    assert trace.ops[new.op - 1].name == "aten.uniform_"
    assert new.parent == module(trace, "net")


def test_attaching_and_moving_before_the_trace_is_known_in_order(loaded: None) -> None:
    model = Net()
    with devtrace.simulate("cuda:2"):
        model.to("cuda:1")
        model.head = nn.Linear(4, 2)
        with pytest.raises(RuntimeError), devtrace.record() as recording:
            model(torch.rand(1, 4, device="cuda:1"))
    trace = recording.trace
    (move,) = trace.moves
    assert move.module == module(trace, "model")
    assert move.device == "cuda:1"
    assert text(move.site) == 'model.to("cuda:1")'
    head, body = module(trace, "model.head"), module(trace, "model.body")
    assert body.op < move.op < head.op < 0
    assert text(body.site).startswith("self.body")


def test_a_parameter_of_an_untraced_cell_keeps_its_birth_and_its_move(loaded: None) -> None:
    model = Net()
    with devtrace.simulate("cuda:2"):
        model.to("cuda:0")
        with devtrace.record() as recording:
            model(torch.rand(1, 4, device="cuda:0"))
    weight = next(row for row in recording.trace.tensors if row.name == "model.head.weight" and row.device == "cuda:0")
    assert weight.producer is None
    before = weight.source
    assert before is not None
    assert before.device == "cpu"
    assert [text(each.site) for each in (weight, before)] == ['model.to("cuda:0")', "nn.Linear(4, 2)"]


def test_a_move_in_the_trace_has_its_op_and_what_it_left_keeps_its_name() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        net = Net()
        net.to("cuda:0")
        net(torch.rand(1, 4, device="cuda:0"))
    trace = recording.trace
    (move,) = trace.moves
    assert trace.ops[move.op].name == "aten._to_copy"
    assert move.tensors == 6
    weights = [row for row in trace.tensors if row.name == "net.head.weight" and row.role == "parameter"]
    assert {str(row.device) for row in weights} == {"cpu", "cuda:0"}


def test_a_module_moved_inside_the_trace_is_not_taken_for_one_on_two_devices() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        model = nn.Linear(8, 2).to("cuda")
        model(torch.randn(4, 8).to("cuda")).sum().backward()
    assert [finding for finding in recording.report.findings if finding.severity != "note"] == []


def test_a_cast_is_a_move_without_a_device() -> None:
    net = Net()
    with devtrace.record() as recording:
        net.double()
        net(torch.rand(1, 4).double())
    (move,) = recording.trace.moves
    assert move.device is None


def test_a_module_that_moved_but_did_not_run_is_in_the_trace() -> None:
    with devtrace.record() as recording:
        net = Net()
        net.half()
    assert module(recording.trace, "net").ran == 0


def test_state_of_an_optimizer_is_born_at_the_step_or_load_that_made_it(loaded: None) -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()  # the first
    optimizer.step()
    saved = optimizer.state_dict()
    with devtrace.record() as recording:
        optimizer.step()
    assert births(recording.trace, "exp_avg") == {"optimizer.step()"}
    other = torch.optim.Adam(model.parameters())
    saved["state"] = {key: {k: v.clone() for k, v in tensors.items()} for key, tensors in saved["state"].items()}
    other.load_state_dict(saved)
    with devtrace.record() as recording:
        other.step()
    assert births(recording.trace, "exp_avg") == {"other.load_state_dict(saved)"}


def births(trace: TraceData, name: str) -> set[str]:
    return {text(tensor.site) for tensor in trace.tensors if tensor.name.endswith(name)}


def test_state_of_an_optimizer_that_torch_knows_is_taken_in_once(loaded: None) -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    optimizer.step()
    state = weakref.ref(optimizer.state[model.weight]["momentum_buffer"])
    reference = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert reference() is None
    assert state() is None


class WithState(torch.optim.SGD):
    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__(parameters, lr=0.1, momentum=0.9)
        for parameter in parameters:
            self.state[parameter]["mean"] = torch.zeros_like(parameter)


def test_state_that_a_constructor_makes_is_born_where_the_optimizer_is_made(loaded: None) -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    adagrad = torch.optim.Adagrad(model.parameters())
    own = WithState(list(model.parameters()))
    adagrad.step()
    own.step()
    with devtrace.record() as recording:
        adagrad.step()
        own.step()
        own.state[model.weight]["mean"].add_(1)
    assert births(recording.trace, "sum") == {"torch.optim.Adagrad(model.parameters())"}
    assert births(recording.trace, "mean") == {"WithState(list(model.parameters()))"}
    assert births(recording.trace, "momentum_buffer") == {"own.step()"}


def test_state_that_a_step_made_before_it_raised_is_born_in_that_step(loaded: None) -> None:
    class Failing(torch.optim.Optimizer):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            for parameter in self.param_groups[0]["params"]:
                self.state[parameter].setdefault("mean", torch.zeros_like(parameter)).add_(1)
            if first:
                raise RuntimeError("the first step")

    model, first = nn.Linear(2, 2), True
    optimizer = Failing(model.parameters(), {})
    with pytest.raises(RuntimeError, match="the first step"):
        optimizer.step(None)
    first = False
    with devtrace.record() as recording:
        optimizer.step()
    assert births(recording.trace, "mean") == {"optimizer.step(None)"}


def test_a_deep_copy_is_born_where_it_was_taken(loaded: None) -> None:
    model = nn.Linear(2, 2)
    average = copy.deepcopy(model)
    with devtrace.record() as recording:
        average(torch.ones(1, 2))
    assert births(recording.trace, "average.weight") == {"copy.deepcopy(model)"}


def test_hooks_know_when_each_parameter_was_registered(loaded: None) -> None:
    model = nn.Linear(2, 2)
    model.double()
    model.scale = nn.Parameter(torch.ones(1))
    (moved,) = [move for move in list(history.moves) if move.module() is model]
    weight, scale = history.modules.registered(model, "weight"), history.modules.registered(model, "scale")
    assert weight is not None
    assert scale is not None
    assert weight.tick < moved.at.tick < scale.tick
    assert history.modules.registered(model, "gone") is None


def test_notes_of_modules_that_are_gone_are_forgotten() -> None:
    notes = ModuleNotes()
    kept = Net()
    notes.attach(kept, "head", kept.head, pack_happening(3, 7, -1))
    for index in range(3 * FEWEST_TO_SWEEP):
        notes.attach(nn.Module(), "child", nn.Module(), pack_happening(index, index, index))
    assert len(notes) <= 2 * FEWEST_TO_SWEEP
    found = notes.attached(kept.head)
    assert found is not None
    assert (found.name, found.at) == ("head", Happening(3, 7, -1))
    assert found.parent() is kept


def test_a_function_that_apply_hands_to_every_module_sees_what_it_sees_without_hooks(loaded: None) -> None:
    def twice(tensor: torch.Tensor, factor: int = 2) -> torch.Tensor:
        return tensor * factor

    class Counting(nn.Linear):
        def _apply(self, fn: Callable[..., torch.Tensor], recurse: bool = True) -> Counting:
            seen.append((fn.__name__, float(fn(torch.ones(()), factor=3))))
            nn.Linear._apply(self, fn, recurse)
            return self

    seen: list[tuple[str, float]] = []
    linear = Counting(2, 2)
    model = nn.Sequential(linear, nn.BatchNorm1d(2))
    nn.init.ones_(linear.weight)
    model._apply(twice)
    assert seen == [("twice", 3.0)]
    assert linear.weight.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    (moved,) = [move for move in list(history.moves) if move.module() is model]
    assert moved.tensors == 7


def test_hooks_keep_no_module_alive(loaded: None) -> None:
    net = Net()
    net.half()
    gone = weakref.ref(net)
    with devtrace.record():
        net(torch.rand(1, 4).half())
    del net
    gc.collect()
    assert gone() is None


def test_hooks_are_taken_out_again() -> None:
    registry = torch.nn.modules.module

    def watched() -> list[object]:
        hooked = dict(registry._global_parameter_registration_hooks), dict(_global_optimizer_post_hooks)
        return [nn.Module._apply, nn.Module.__call__, torch.optim.Optimizer.load_state_dict, *hooked]

    before = watched()
    hooks.install()
    with devtrace.record():
        Net().double()
    hooks.uninstall()
    assert watched() == before


def test_hooks_let_lazy_modules_and_swapped_parameters_be(loaded: None) -> None:
    lazy = nn.LazyLinear(3)
    lazy.to(torch.float64)
    lazy(torch.rand(2, 4).double())
    net = Net()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        net.double()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert net.head.weight.dtype == torch.float64


def test_what_a_function_called_its_tensors_is_known_after_it_has_returned() -> None:
    def run() -> None:
        model = Net()
        model(torch.rand(2, 4))

    with devtrace.record(namespace={}) as recording:
        run()
        gc.collect()
    named = {(row.role, row.name) for row in recording.trace.tensors if row.role}
    assert ("parameter", "model.head.weight") in named


def test_a_module_that_is_collected_while_the_trace_is_made_keeps_its_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [nn.Linear(2, 2)]
    whole = ModuleHistory.add_modules

    def collected(*given: Any) -> None:
        models.clear()
        gc.collect()
        whole(*given)

    monkeypatch.setattr(ModuleHistory, "add_modules", collected)
    with devtrace.simulate("cuda:2"), devtrace.record() as recording:
        models[0].to("cuda:0")
    (move,) = recording.trace.moves
    assert move.module is not None
    assert (move.module.type, move.tensors) == ("Linear", 2)
    assert recording.report.notes == ()


def test_an_optimizer_that_goes_as_python_ends_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of modules are gone before the last objects are."""
    faults: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", faults.append)
    optimizer = torch.optim.Adam([nn.Parameter(torch.ones(2))])
    with devtrace.record():
        optimizer.param_groups[0]["params"][0].square().sum().backward()
        optimizer.step()
    monkeypatch.setattr(optimizers, "history", None)
    del optimizer
    gc.collect()
    assert faults == []
