"""With a budget what repeats is recorded now and then; what is found of a program stays the same."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import budgeted
import devtrace
from devtrace.api.options import FLAGS
from devtrace.api.recording import record
from devtrace.budget import budget, lines
from devtrace.budget.budget import Budget
from devtrace.budget.segments import FIRST_BATCH, NEEDED
from devtrace.diagnosis.findings import Finding
from devtrace.recording.columns.chunk import WIDTH
from devtrace.recording.hot import dispatch
from devtrace.recording.recording import Recording
from devtrace.trace.checks import broken_rule
from failing import birth_of
from warm import Warm

STEPS = 50
LATE = STEPS - 5
Step = Callable[[nn.Sequential, int], object]


def train(rare: Step | None = None, *, at: int = LATE, steps: int = STEPS) -> None:
    """Train for some steps; after step `at` do something rare."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to("cuda:0")
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        batch = torch.rand(5, 4).to("cuda:0")
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        loss.item()
        if rare is not None and step == at:
            rare(model, step)


def recorded(program: Callable[[], object], budget: float | None = 0.1, max_ops: int = 100_000) -> record:
    with suppress(RuntimeError, TypeError), devtrace.record(simulate="cuda:2", budget=budget, max_ops=max_ops) as found:
        program()
    return found


def seen(finding: Finding) -> tuple[Any, ...]:
    culprit = finding.culprit
    birth = (culprit.name, str(culprit.born), str(culprit.moved)) if culprit is not None else None
    return finding.rule, finding.cause, str(finding.site), birth, [edit.after for edit in finding.edits]


def both(program: Callable[[], object]) -> tuple[record, record]:
    whole, short = recorded(program, None), recorded(program)
    assert short.trace.truncated > len(short.trace.ops)
    assert broken_rule(short.trace) is None
    return whole, short


def found_the_same(whole: record, short: record) -> bool:
    return [seen(each) for each in short.report.findings] == [seen(each) for each in whole.report.findings]


def ops_of(recording: record) -> int:
    return sum(sum(dict(row.ops).values()) for row in recording.report.ledger)


def counted(recording: record) -> dict[str, dict[str, int]]:
    return {str(row.site): {**dict(row.ops), "copies": row.h2d, "waits": row.syncs} for row in recording.report.ledger}


def test_a_loop_is_recorded_now_and_then_and_counted_in_between() -> None:
    whole, short = both(train)
    assert found_the_same(whole, short)
    expected, got = counted(whole), counted(short)
    assert got.keys() == expected.keys()
    for site, counts in expected.items():
        for what, count in counts.items():
            assert got[site][what] == pytest.approx(count, rel=0.02, abs=1), (site, what)


def test_a_note_gives_what_was_recorded_and_what_counted() -> None:
    note, *lines = recorded(train).report.notes
    assert re.search(r"\d+ ops were recorded; about [\d,]+ ops more, with their waits", note)
    assert ["Python 3.12" in line for line in lines] == ([True] if sys.version_info < (3, 12) else [])


def test_folding_goes_on_with_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FULL", 64 * WIDTH)
    whole, short = recorded(train, None), recorded(train, max_ops=300)
    assert len(short.trace.ops) <= 300
    assert broken_rule(short.trace) is None
    assert ops_of(short) == pytest.approx(ops_of(whole), rel=0.02)


def replace_a_layer(model: nn.Sequential, step: int) -> None:
    model[2] = nn.Linear(4, 2)


def replace_a_parameter(model: nn.Sequential, step: int) -> None:
    model[0].bias = nn.Parameter(torch.zeros(4))


def send_it_away(model: nn.Sequential, step: int) -> None:
    model.to("cuda:1")


def send_a_part_away(model: nn.Sequential, step: int) -> None:
    model[0].cpu()


def use_another_model(model: nn.Sequential, step: int) -> None:
    nn.Linear(4, 2)(torch.ones(1, 4, device="cuda:0"))


def build_and_forget(model: nn.Sequential, step: int) -> None:
    nn.Linear(4, 2).to("cuda:0")(torch.ones(1, 4, device="cuda:0")).sum().item()


@pytest.mark.parametrize(
    "rare",
    [replace_a_layer, replace_a_parameter, send_it_away, send_a_part_away, build_and_forget],
)
def test_what_happens_to_modules_in_between_is_found_as_ever(rare: Step) -> None:
    assert found_the_same(*both(lambda: train(rare)))


def swap_its_data(model: nn.Sequential, step: int) -> None:
    model[0].bias.data = torch.zeros(4)


def give_a_host_batch(model: nn.Sequential, step: int) -> None:
    model(torch.rand(5, 4))


def add_what_is_new(model: nn.Sequential, step: int) -> None:
    there, here = torch.ones(2, device="cuda:0"), torch.ones(2)
    there.add_(here)


def make_numpy_of_it(model: nn.Sequential, step: int) -> None:
    torch.ones(2, device="cuda:0").numpy()


@pytest.mark.parametrize(
    "rare", [swap_its_data, give_a_host_batch, add_what_is_new, make_numpy_of_it, use_another_model]
)
def test_an_error_in_between_is_at_its_line_and_claims_nothing_that_the_gap_may_hide(rare: Step) -> None:
    whole, short = both(lambda: train(rare))
    (expected, *_), (got, *_) = whole.report.findings, short.report.findings
    assert (got.rule, got.severity, str(got.site)) == (expected.rule, "error", str(expected.site))
    assert got.devices == expected.devices
    assert got.cause in (expected.cause, "unknown")


def test_an_error_in_between_is_in_its_module() -> None:
    whole, short = both(lambda: train(give_a_host_batch))
    paths = [[error.op.call.module.path for error in each.trace.errors] for each in (whole, short)]
    assert paths[0] == paths[1] == ["model.0"]


def test_a_tensor_that_was_there_before_is_dated_in_an_error_in_between() -> None:
    def program() -> None:
        mask = torch.ones(2)
        train(lambda model, step: model(torch.ones(1, 4, device="cuda:0")) * mask)

    _, short = both(program)
    finding = short.report.findings[0]
    assert birth_of(finding).text == "mask = torch.ones(2)"
    assert finding.cause == "never-moved"


def test_an_error_that_was_caught_ends_nothing() -> None:
    def rare(model: nn.Sequential, step: int) -> None:
        with suppress(RuntimeError):
            model(torch.rand(5, 4))

    whole, short = both(lambda: train(rare, at=30))
    names = [finding.rule for finding in short.report.findings]
    assert set(names) <= {finding.rule for finding in whole.report.findings}


def in_loops(after: Callable[[torch.Tensor], object]) -> None:
    for _ in range(20):
        model = nn.Linear(4, 2).to("cuda:0")
        total = torch.zeros((), device="cuda:0")
        for _ in range(25):
            total += model(torch.ones(3, 4, device="cuda:0")).sum().detach()
        after(total)


def test_what_follows_a_loop_in_another_one_is_recorded_from_its_second_time_on() -> None:
    whole, short = both(lambda: in_loops(lambda total: total.mul_(2)))
    rows = [row for each in (whole, short) for row in each.report.ledger if "mul_" in row.site.text]
    counts = [dict(row.ops)["cuda:0"] for row in rows]
    assert counts == [20, 20 - (sys.version_info < (3, 12))]


def test_a_value_that_is_read_in_between_is_counted_each_time() -> None:
    def rare(model: nn.Sequential, step: int) -> None:
        torch.ones(1, device="cuda:0").item()

    def program() -> None:
        in_loops(lambda total: total.item())
        train(rare, at=20)

    waits = [
        [(seen(finding), finding.count) for finding in each.report.findings if finding.rule == "host-sync"]
        for each in both(program)
    ]
    assert waits[0] == waits[1] != []


def test_a_fault_of_ours_at_a_value_that_is_read_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(frame: object) -> int:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(budget, "find", fail)
    monkeypatch.setattr(lines, "_monitoring", None)
    read = []
    short = recorded(lambda: train(lambda model, step: read.append(torch.ones(1).item()), at=20))
    assert read == [1.0]
    assert any("ZeroDivisionError" in note for note in short.report.notes)


@pytest.mark.parametrize("value", [True, 3, 2**60, 2.5, 1 + 2j])
def test_values_that_are_read_in_between_are_what_they_are(value: complex) -> None:
    read = []
    recorded(lambda: train(lambda model, step: read.append(torch.tensor(value).item()), at=20))
    assert [(type(each), each) for each in read] == [(type(value), value)]


def infer(model: nn.Module, device: str) -> list[torch.Tensor]:
    found = []
    for _ in range(30):
        found.append(model(torch.ones(3, 4, device="cuda:0")).to(device))
    return found


def infer_at_two_lines(model: nn.Module) -> None:
    infer(model, "cuda:0")
    infer(model, "cpu")


def infer_at_one_line(model: nn.Module) -> None:
    for device in ("cuda:0", "cpu"):
        infer(model, device)


def infer_in_two_loops(model: nn.Module) -> None:
    for device in ("cuda:0", "cpu"):
        for _ in range(30):
            model(torch.ones(3, 4, device="cuda:0")).to(device)


BEFORE_A_SAMPLE = 0 if sys.version_info >= (3, 12) else NEEDED + FIRST_BATCH - 30


@pytest.mark.parametrize(
    ("program", "missed"),
    [(infer_at_two_lines, 0), (infer_at_one_line, BEFORE_A_SAMPLE), (infer_in_two_loops, BEFORE_A_SAMPLE)],
)
def test_a_loop_that_begins_again_is_recorded_anew_at_another_line_or_where_python_calls_back(
    program: Callable[[nn.Module], None], missed: int
) -> None:
    recordings = both(lambda: program(nn.Linear(4, 2).to("cuda:0")))
    assert [sum(row.d2h for row in each.report.ledger) for each in recordings] == [30, 30 - missed]


class Sliced(nn.Sequential):
    """Takes a slice of its layers in each call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self[:2].children():
            x = layer(x)
        return x


Loop = Callable[[nn.Module, torch.optim.Optimizer, torch.Tensor], object]


def two_with_an_evaluation(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for _ in range(4):
        for _ in range(30):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = [model(x).sum().item() for _ in range(20)]
        assert len(right) == 20
        model.train()


def with_a_closure_that_is_none(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step(None)


def that_accumulates_gradients(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for step in range(200):
        model(x).sum().backward()
        if step % 8 == 7:
            optimizer.step()
            optimizer.zero_grad()


def without_an_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for _ in range(STEPS):
        model(x).sum().backward()


@pytest.mark.parametrize(
    ("kind", "loop"),
    [
        (nn.Sequential, two_with_an_evaluation),
        (nn.Sequential, with_a_closure_that_is_none),
        (nn.Sequential, that_accumulates_gradients),
        (Sliced, without_an_optimizer),
    ],
)
def test_a_loop_of_any_form_is_counted(kind: type[nn.Sequential], loop: Loop) -> None:
    def program() -> None:
        torch.manual_seed(0)
        model = kind(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to("cuda:0")
        loop(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.rand(5, 4, device="cuda:0"))

    whole, short = both(program)
    assert found_the_same(whole, short)
    assert counted(short).keys() == counted(whole).keys()
    assert ops_of(short) == pytest.approx(ops_of(whole), rel=0.02)


def change_the_shapes() -> None:
    model = nn.Linear(4, 2).to("cuda:0")
    for step in range(60):
        model(torch.ones(step + 1, 4, device="cuda:0"))


@pytest.mark.parametrize(("program", "budget"), [(train, None), (change_the_shapes, 0.1)])
def test_without_a_budget_and_where_nothing_repeats_all_is_recorded(
    program: Callable[[], object], budget: float | None
) -> None:
    recording = recorded(program, budget)
    assert (recording.trace.truncated, recording.report.notes) == (0, ())


class Watching(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops += 1
        return func(*args, **(kwargs or {}))


def test_under_a_mode_of_the_users_all_is_recorded() -> None:
    def program() -> None:
        with Watching() as mode:
            train(steps=40)
        assert mode.ops > 300

    assert recorded(program).trace.truncated == 0


def test_a_mode_of_the_users_that_begins_in_between_sees_what_it_would() -> None:
    found = []

    def rare(model: nn.Sequential, step: int) -> None:
        with Watching() as mode:
            replace_a_layer(model, step)
            model.to("cuda:0")
        found.append(mode.ops)

    recorded(lambda: train(rare), None)
    recorded(lambda: train(rare))
    assert found[0] == found[1] > 0


def test_a_thread_that_starts_in_between_is_recorded() -> None:
    def rare(model: nn.Sequential, step: int) -> None:
        thread = threading.Thread(target=lambda: torch.ones(3, device="cuda:0").mul_(7))
        thread.start()
        thread.join()

    whole, short = both(lambda: train(rare))
    in_thread = [[op.name for op in each.trace.ops if op.thread.name != "MainThread"] for each in (whole, short)]
    assert in_thread[0] == in_thread[1]
    assert "aten.mul_.Tensor" in in_thread[1]


def test_a_backward_op_whose_forward_op_was_not_recorded_is_at_its_line() -> None:
    def program() -> None:
        table, top = nn.Linear(4, 4), nn.Linear(4, 1).to("cuda:0")
        optimizer = torch.optim.SGD([*table.parameters(), *top.parameters()], lr=0.1)
        for step in range(2 * STEPS):
            hidden = table(torch.ones(3, 4))
            if step == 0:
                torch.ones(1)  # so that a repetition begins below this line
            loss = top(hidden.to("cuda:0")).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    whole, short = both(program)
    expected, got = (
        {str(row.site): row.cpu_compute for row in each.report.ledger if row.cpu_compute} for each in (whole, short)
    )
    assert got.keys() == expected.keys()


def with_a_thread_beside(train_with: Callable[[Step], None], run: Callable[[], object]) -> None:
    """Train with a thread that waits from the first step on, and runs something when a rare step lets it."""
    goes, done = threading.Event(), threading.Event()

    def wait() -> None:
        goes.wait()
        try:
            run()
        finally:
            done.set()

    def rare(model: nn.Sequential, step: int) -> None:
        goes.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        train_with(rare)
    finally:
        goes.set()
        thread.join()


def test_a_thread_that_runs_no_op_keeps_nothing_recorded() -> None:
    assert found_the_same(*both(lambda: with_a_thread_beside(train, lambda: None)))


def add_in_a_thread() -> None:
    torch.ones(3, device="cuda:0").add_(torch.ones(())).sum().item()


def test_a_waiting_thread_that_begins_to_run_ops_in_between_is_recorded() -> None:
    late = lambda rare: train(rare, at=20, steps=90)  # noqa: E731
    whole, short = both(lambda: with_a_thread_beside(late, add_in_a_thread))
    expected, got = ([op.name for op in each.trace.ops if op.thread.name != "MainThread"] for each in (whole, short))
    assert got == expected
    assert "aten.add_.Tensor" in got
    assert found_the_same(whole, short)


def test_nothing_is_left_when_a_recording_ends_in_between() -> None:
    call, height = nn.Module.__call__, torch._C._len_torch_dispatch_stack()
    recording = recorded(train)
    assert recording.trace.truncated
    assert nn.Module.__call__ is call
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::_local_scalar_dense", "ADInplaceOrView")
    assert torch._C._len_torch_dispatch_stack() == height


def test_no_mode_is_on_the_stack_while_the_loop_repeats() -> None:
    heights = []
    model = nn.Linear(4, 4)
    recording = Recording(100_000, None, partial(Budget, share=0.1))
    recording.start()
    for _ in range(40):
        model(torch.ones(1, 4))
        heights.append(torch._C._len_torch_dispatch_stack())
    recording.stop()
    assert heights[0] == 1
    assert heights.count(0) > 20


def test_a_process_that_is_ended_in_between_has_what_was_counted() -> None:
    recording = record(simulate="cuda:1", budget=0.1)
    with recording:
        train()
        recording.conclude()
        assert recording.trace.truncated > 300


def test_values_are_those_without_a_recording() -> None:
    def values() -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters())
        found = []
        for _ in range(60):
            optimizer.zero_grad()
            loss = model(torch.rand(8, 4)).pow(2).mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    expected = values()
    with devtrace.record(budget=0.1) as recording:
        assert values() == expected
    assert recording.trace.truncated > 0


def test_a_line_that_no_repetition_had_is_recorded_before_it_runs_where_python_calls_back() -> None:
    def rare(model: nn.Sequential, step: int) -> None:
        torch.ones(3, device="cuda:0").mul_(7).item()

    _, short = both(lambda: train(rare))
    assert [op.name for op in short.trace.ops].count("aten.mul_.Tensor") == int(sys.version_info >= (3, 12))


@pytest.mark.parametrize(("text", "share"), [("10%", 0.1), ("0.05", 0.05), ("250 %", 2.5)])
def test_a_budget_is_a_share_of_the_time(text: str, share: float) -> None:
    (flag,) = (flag for flag in FLAGS if flag.name == "--budget")
    assert flag.read(text) == pytest.approx(share)


@pytest.mark.parametrize("budget", [0, -0.1, float("nan"), "10%", True])
def test_a_budget_that_is_none_is_refused(budget: Any) -> None:
    with pytest.raises(devtrace.DevtraceError, match="budget-value: got budget="):
        devtrace.record(budget=budget)


CHOSEN = ["costs/tensor_rate", "attached-after-move", "stale-copy/ema_shadow", "zoo/inference", "zoo/early"]
PARTLY_SEEN = ["costs/full_batch", "not-registered/spline_basis", "zoo/log_lines"]
"""Programs that make tensors, or copy them, before a module of theirs ends the gap."""


def chosen(words: list[str]) -> pytest.MarkDecorator:
    found = [next(each for each in budgeted.programs() if word in str(each[0])) for word in words]
    return pytest.mark.parametrize(("path", "arguments"), found, ids=words)


@chosen(CHOSEN)
def test_a_program_at_a_late_step_is_found_out_as_ever(path: Path, arguments: tuple[str, ...], warm: Warm) -> None:
    assert budgeted.compare(path, "between", arguments, warm) == ([], [])


@chosen(PARTLY_SEEN)
def test_what_was_not_seen_leads_to_no_claim(path: Path, arguments: tuple[str, ...], warm: Warm) -> None:
    wrong, _ = budgeted.compare(path, "between", arguments, warm)
    assert wrong == []
