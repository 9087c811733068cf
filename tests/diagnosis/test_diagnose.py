"""What diagnosis promises for any program: one report, every import order, torch's own words where ours fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.parallel import replicate

import devtrace
from costs import GPU, healthy, warnings, warns
from devtrace.api.results import Report
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.rules import device_mismatch
from devtrace.diagnosis.rules.error_rules import device_errors
from devtrace.diagnosis.store import report_of
from devtrace.recording.context import hooks
from devtrace.report.html import fragment
from failing import Text, assert_tells, fails


def failing() -> devtrace.record:
    """A head attached after the move."""
    with pytest.raises(RuntimeError, match="same device"), devtrace.record(simulate="cuda:2") as recording:  # noqa: PT012
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to("cuda:0")
        model[1] = nn.Linear(4, 3)
        model(torch.rand(2, 4, device="cuda:0"))
    return recording


def test_no_name_leads_through_an_object_of_devtraces() -> None:
    """A recording is a variable of the frame that made it, and knows the namespace."""
    with pytest.raises(RuntimeError, match="same device"), devtrace.record(simulate="cuda:1", namespace={}) as own:  # noqa: PT012
        namespace = own._namespace
        assert isinstance(namespace, dict)
        namespace["layer"] = nn.Linear(4, 4)
        namespace["layer"](torch.rand(2, 4, device="cuda:0"))
    culprit = own.report.findings[0].culprit
    assert culprit is not None
    assert culprit.names
    assert not [name for name in culprit.names if "own" in name]


def test_a_report_is_made_once_and_carried_by_its_trace() -> None:
    recording = failing()
    report = devtrace.diagnose(recording.trace)
    assert report is recording.report
    again = devtrace.diagnose(replace(report.trace))
    assert again.findings == report.findings
    assert again.ledger == report.ledger
    assert again.text == report.text


def test_a_layer_attached_before_the_recording_began_is_known_to_be_later_than_the_move() -> None:
    hooks.install()  # as %load_ext does
    try:
        with devtrace.simulate("cuda:1"):
            model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
            model.to("cuda")
            model[1] = nn.Linear(4, 3)
            with pytest.raises(RuntimeError, match="same device"), devtrace.record() as recording:
                model(torch.rand(2, 4, device="cuda"))
            finding = recording.report.findings[0]
    finally:
        hooks.uninstall()
    assert_tells(finding, cause="attached-after-move", certainty="seen", moved='model.to("cuda")')


def test_a_cast_before_the_recording_began_is_known_to_have_missed_what_was_attached_after_it() -> None:
    hooks.install()
    try:
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        model.to(torch.bfloat16)
        model[2] = nn.Linear(4, 3)
        with pytest.raises(RuntimeError, match="same dtype"), devtrace.record() as recording:
            model(torch.rand(2, 4, dtype=torch.bfloat16))
        finding = recording.report.findings[0]
    finally:
        hooks.uninstall()
    assert_tells(
        finding, cause="attached-after-cast", dtype="float32", certainty="seen", moved="model.to(torch.bfloat16)"
    )


def test_a_cast_before_the_recording_began_is_known_to_have_missed_a_plain_attribute() -> None:
    hooks.install()
    try:
        layer = Scaled(4, 4)
        layer.half()
        with pytest.raises(RuntimeError, match="same dtype"), devtrace.record() as recording:
            layer(torch.rand(2, 4).half())
        finding = recording.report.findings[0]
    finally:
        hooks.uninstall()
    assert_tells(finding, cause="not-registered", name="layer.scale", dtype="float32", moved="layer.half()")


class Scaled(nn.Linear):
    """A layer with a factor as a plain attribute, which no cast takes along."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__(ins, outs)
        self.scale = torch.ones(ins)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input * self.scale)


def test_findings_survive_their_way_through_json() -> None:
    report = failing().report
    assert report.trace.findings is not None
    assert report_of(report.trace).findings == report.findings


def test_a_saved_finding_of_a_rule_that_is_gone_is_shown_in_its_own_words() -> None:
    trace = failing().report.trace
    gone = {"rule": "dtype-cost", "severity": "warning", "cause": "", "message": "`goals` is float64.", "site": 0}
    report = devtrace.diagnose(replace(trace, findings=(*(trace.findings or ()), gone)))
    assert report.findings[-1].message == "`goals` is float64."
    assert "`goals` is float64." in str(report)
    assert "<code>goals</code> is float64." in fragment(report)


def test_a_diagnosis_that_fails_leaves_torchs_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("made to fail")

    monkeypatch.setattr(device_mismatch, "find_mismatch", broken)
    report = failing().report
    assert isinstance(report, Report)
    finding = report.findings[0]
    assert (finding.severity, finding.cause) == ("error", "unknown")
    assert "same device" in finding.message
    assert "made to fail" in report.text
    assert len(report.ledger) > 0


def test_without_live_objects_the_recorded_names_are_used() -> None:
    trace = replace(failing().trace, findings=None)
    found = list(device_errors(TraceQueries(trace), []))
    assert found[0].culprit is not None
    assert found[0].culprit.device == "cpu"
    assert found[0].culprit.born is not None


@healthy
def test_modules_called_by_one_name_are_no_split_module() -> None:
    blocks = [nn.Linear(4, 4).to("cuda:0"), nn.Linear(4, 4, bias=False).to("cuda:1")]
    x = torch.rand(2, 4)
    for index, block in enumerate(blocks):
        x = block(x.to(f"cuda:{index}"))


@healthy
def test_a_replaced_layer_and_its_successor_are_no_split_module() -> None:
    model = nn.Sequential(nn.Linear(4, 4)).to("cuda:0")
    model(torch.rand(2, 4, device="cuda:0"))
    old, model[0] = model[0], nn.Linear(4, 2, bias=False).to("cuda:1")
    model(torch.rand(2, 4, device="cuda:1"))
    assert old.bias is not None


class Average(nn.Module):
    """Keeps its buffer anew in each forward."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, device="cuda:0"))
        self.register_buffer("mean", torch.zeros(4, device="cuda:0"))

    def forward(self, x: torch.Tensor) -> None:
        self.mean: torch.Tensor = self.mean + (x.to(self.mean.device) * self.weight).detach().mean(0)


class Replicated(nn.Sequential):
    """Runs replicas in threads as DataParallel does, the second one first and last."""

    def forward(self, x: torch.Tensor) -> None:
        replicas = replicate(self[0], [0, 1])
        for replica in replicas[::-1] + replicas:
            (thread := Thread(target=replica, args=(x,))).start()
            thread.join()


@healthy
def test_replicas_are_no_split_module() -> None:
    model, x = Replicated(Average()), torch.rand(2, 4, device="cuda:0")
    model(x)
    Replicated(Average())(x)  # which is gone when the recording ends


class Late(nn.Module):
    """Brings its bias along in each forward, which hides that nothing moved it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + self.bias.to(x.device)


@warns(rule="split-module")
def test_a_module_with_one_tensor_here_and_one_there_is_split() -> None:
    late = Late()
    late.weight = nn.Parameter(late.weight.detach().to("cuda:0"))
    late(torch.rand(2, 4, device="cuda:0"))


def train(loss_of: Callable[[nn.Module], torch.Tensor], steps: int = 12) -> None:
    net = nn.Linear(8, 4).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()


def test_a_loss_on_the_cpu_is_a_round_trip_of_its_gradient() -> None:
    criterion = nn.CrossEntropyLoss(weight=torch.ones(4))
    (found,) = warnings(
        lambda: train(lambda net: criterion(net(torch.rand(16, 8, device=GPU)).cpu(), torch.arange(16) % 4))
    )
    assert (found.rule, found.count) == ("device-to-host-copy", 12)
    assert "the gradient of what the CPU computes from it goes back" in found.message


def test_a_layer_on_the_cpu_is_named() -> None:
    def program() -> None:
        head = nn.Linear(4, 2)
        train(lambda net: head(net(torch.rand(16, 8, device=GPU)).cpu()).square().mean())

    found = {finding.rule: finding for finding in warnings(program)}
    assert "`head` works there" in found["cpu-compute"].message
    assert "move `head` to the device" in found["cpu-compute"].help


@warns(rule="device-to-host-copy", count=8, message=Text("numpy"))
def test_a_detour_through_numpy_in_one_statement_is_a_round_trip() -> None:
    net = nn.Linear(8, 8).to(GPU)
    x = torch.rand(4, 8, device=GPU)
    for _ in range(8):
        x = torch.from_numpy(net(x).detach().cpu().numpy() * 2).to(GPU)


@warns(
    rule="device-to-device-copy",
    count=8,
    message=Text("`shared.weight` is the same tensor each time."),
    help="move `shared` to the device where it works",
)
def test_weights_copied_between_gpus_in_each_forward_are_named() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight.to(x.device)

    shared = Shared().to(GPU)
    for _ in range(8):
        shared(torch.rand(4, 8, device="cuda:1"))


@warns(rule="host-sync", count=20, message=Text("to decide a branch"))
def test_a_branch_on_a_value_of_each_step_is_a_sync_worth_a_warning() -> None:
    net = nn.Linear(8, 8).to(GPU)
    for _ in range(20):
        loss = net(torch.rand(4, 8, device=GPU)).sum()
        if torch.isnan(loss):
            break


@healthy
def test_a_loop_that_needs_the_value_for_its_own_condition_is_healthy() -> None:
    x = torch.full((4,), 1000.0, device=GPU)
    while x.max() > 1:
        x = x / 2


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    @property
    def device(self) -> torch.device:
        return self.layer.weight.device

    @property
    def device_name(self) -> str:
        return str(self.device)


@warns(
    rule="device-comparison",
    site='x.device == "cpu"',
    edits=['if x.device.type == "cpu":'],
    message='`x.device == "cpu"` is never true: a `torch.device` is not equal to a string.',
)
def test_a_device_compared_with_a_string_is_found_on_a_tensor() -> object:
    x: Any = torch.ones(4)
    if x.device == "cpu":
        x = x.to(GPU)
    return x * 2


def test_a_device_compared_with_a_string_is_found_on_an_objects_property() -> None:
    encoder: Any = Encoder()
    with pytest.raises(RuntimeError), devtrace.record(simulate="cuda:1") as recording:  # noqa: PT012
        if encoder.device == "cpu":
            encoder.to(GPU)
        encoder.layer(torch.ones(2, 4, device=GPU))
    rules = [finding.rule for finding in recording.report.findings if finding.severity != "note"]
    assert rules == ["device-mismatch", "device-comparison"]


class Pool:
    """Its methods compare what may be a string."""

    def __init__(self) -> None:
        self.device = "cpu"

    def one(self) -> torch.Tensor:
        return torch.ones(2, device=GPU) if self.device == "cuda" else torch.ones(2)

    def two(self) -> torch.Tensor:
        return torch.ones(2, device=GPU) if self.device != "cpu" else torch.ones(2)


def test_the_objects_of_a_program_are_walked_once_for_all_its_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[None] = []
    begin = access_paths.Walk.__post_init__
    monkeypatch.setattr(access_paths.Walk, "__post_init__", lambda walk: walks.append(begin(walk)))
    pool = Pool()
    assert warnings(lambda: (pool.one() + pool.two(), torch.ones(2, device=GPU) * 2)) == []
    assert len(walks) == 1


def test_devices_that_may_be_strings_are_compared_in_peace() -> None:
    class Runner:
        def __init__(self) -> None:
            self.device = "cpu"
            self.norm = nn.LayerNorm(4)

        def run(self) -> torch.Tensor:
            x = torch.ones(4)
            if self.device == "cpu" or x.device.type == "cpu" or str(x.device) == "cpu":
                x = self.norm(x)
            return x

    assert warnings(Runner().run) == []


def unnamed(height: int) -> torch.Tensor:
    return torch.zeros(height, device=GPU) + torch.arange(height)


def named(height: int) -> torch.Tensor:
    steps = torch.arange(height)
    return torch.zeros(height, device=GPU) + steps


@fails(cause="created-without-device", name="torch.arange(height)")
def test_a_factory_that_has_no_name_and_fails_in_its_own_line_lacks_a_device() -> None:
    unnamed(4)


@fails(cause="never-moved", name="steps")
def test_a_factory_that_has_a_name_was_never_moved() -> None:
    named(4)


@fails(
    cause="never-moved",
    name="model.head.weight",
    moved=None,
    message=Text("; 2 other tensors of `model` are on cuda:1. Probably nothing moved it to cuda:1."),
)
def test_a_part_left_on_the_cpu_beside_parts_on_two_devices_is_not_given_a_move_that_was_not_its_own() -> None:
    class Pipeline(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4).to("cuda:0")
            self.second = nn.Linear(4, 4).to("cuda:1")
            self.head = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.head(self.second(self.first(x).to("cuda:1")))
            return made

    model = Pipeline()
    model(torch.rand(2, 4, device="cuda:0"))


@fails(cause="never-moved", name="batch", born="batch = torch.rand(2, 3, 4)")
def test_a_state_that_a_layer_of_torchs_makes_where_its_input_is_leads_to_that_input() -> None:
    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(4, 8)

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            state: tuple[torch.Tensor, torch.Tensor] | None = None
            for step in range(batch.shape[1]):
                state = self.cell(batch[:, step], state)
            assert state is not None
            return state[0]

    model = Steps().to("cuda:0")
    batch = torch.rand(2, 3, 4)
    model(batch)
