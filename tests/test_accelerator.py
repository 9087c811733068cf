"""Recording on a genuine device, which has threads of autograd's own and data that no mode sees come.

To register the device is for a process's whole life, so one process of their own runs what the tests ask.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
import re
import threading
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from typing import Any, TypeVar

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import accelerator
import devtrace
import needs
from accelerator import one_liners
from devtrace.api.environment import describe
from devtrace.notebook import usage
from devtrace.notebook.inventory.inventory import listing
from devtrace.trace.checks import broken_rule

T = TypeVar("T")
Run = Callable[[Callable[[], Any]], Any]


@pytest.fixture(scope="module")
def forks() -> Any:
    missing = accelerator.why_not()
    if missing and not needs.CI:
        pytest.skip(missing)
    assert not missing
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "devtrace.recording.recording", "numpy.ma"])
    return context


@pytest.fixture(scope="module")
def run(forks: Any) -> Iterator[Run]:
    """Call a function of this file where `accel:0` and `accel:1` are devices."""
    with Pool(1, initializer=load, context=forks) as pool:
        yield lambda function: pool.apply_async(function).get(timeout=280)


def load() -> None:
    torch.set_num_threads(1)
    accelerator.load()


def copies_of(make: Callable[[str], Any], device: str) -> list[tuple[str, str, int, str]]:
    with devtrace.record() as recording:
        make(device)
    assert broken_rule(recording.trace) is None
    assert recording.trace.notes == ()
    assert recording.report.text
    return [(str(each.from_.name), str(each.to.name), each.bytes, each.op.kind) for each in recording.trace.copies]


def lists() -> list[list[tuple[str, str, int, str]]]:
    x = torch.ones(4, device="accel:1")
    makers: list[Callable[[str], Any]] = [
        lambda device: torch.tensor([1.0, 2.0], device=device),
        lambda device: x.new_tensor([1, 2]),
        lambda device: torch.as_tensor([1.0], device=device),
        lambda device: x[[0, 1]],
        lambda device: x.__setitem__([0, 1], 2.0),
        lambda device: x.__setitem__(0, 2.0),
        lambda device: torch.tensor([1.0, 2.0]),
        lambda device: torch.tensor([1.0, 2.0], device="meta"),
    ]
    return [copies_of(make, "accel:1") for make in makers]


def test_data_of_the_host_that_torch_makes_a_tensor_of_on_a_device_is_a_copy(run: Run) -> None:
    def copied(bytes: int) -> list[tuple[str, str, int, str]]:
        return [("cpu", "accel:1", bytes, "copy")]

    assert run(lists) == [copied(8), copied(8), copied(4), copied(16), copied(16), [], [], []]


def fit(*, repeated: bool = False) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("accel:1")
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(2):
        x, target = torch.rand(2, 4).to("accel:1"), torch.zeros(2, dtype=torch.long, device="accel:1")
        out = checkpoint(model, x, use_reentrant=False) if repeated else model(x)
        loss = nn.functional.cross_entropy(out, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return [each.detach().cpu() for each in model.parameters()]


def sites_of_backward() -> list[tuple[str, int, list[str]]]:
    found = []
    for repeated in (False, True):
        with devtrace.record() as recording:
            fit(repeated=repeated)
        ops = [op for op in recording.trace.ops if op.phase == "backward"]
        alone = {op.site.text for op in ops if op.site is not None and op.forward is None and op.site.function == "fit"}
        without = [op.name for op in recording.trace.ops if op.site is None]
        found.append((" ".join(sorted(alone)), len(without), sorted({op.name for op in ops} & {"aten.addmm"})))
    return found


def test_every_op_of_a_backward_pass_on_a_thread_of_the_device_has_a_line(run: Run) -> None:
    plain, repeated = run(sites_of_backward)
    assert (plain[1], repeated[1]) == (0, 0)
    assert "loss.backward()" in plain[0]
    assert repeated[2] == ["aten.addmm"]


def names_of_threads() -> tuple[list[str], list[str]]:
    with devtrace.record() as recording:
        fit()
    return [thread.name for thread in threading.enumerate()], [thread.name for thread in recording.trace.threads]


def test_a_thread_of_autograd_s_is_none_of_python_s(run: Run) -> None:
    known, followed = run(names_of_threads)
    assert not [name for name in known if name.startswith("Dummy")]
    assert followed == ["MainThread", "autograd"]


def modules_of_backward() -> set[tuple[str, str]]:
    with devtrace.record() as recording:
        fit()
    assert broken_rule(recording.trace) is None
    ops = [op for op in recording.trace.ops if op.phase == "backward" and op.call is not None]
    assert all(op.forward is not None and op.forward.call.id == op.call.id for op in ops)
    return {(op.name, op.call.module.path) for op in ops}


def test_an_op_of_a_backward_pass_is_of_the_module_whose_op_it_differentiates(run: Run) -> None:
    found = run(modules_of_backward)
    assert {("aten.mm", "model.2"), ("aten.mm", "model.0"), ("aten.threshold_backward", "model.1")} <= found


def wrong_seed() -> tuple[str, str, str, tuple[str, ...], list[str]]:
    w = torch.ones(3, device="accel:0", requires_grad=True)
    with pytest.raises(RuntimeError), devtrace.record() as recording:
        (w * 2).backward(torch.ones(3))
    (finding,) = recording.report.findings
    assert finding.culprit is not None
    return finding.rule, finding.culprit.name, finding.cause, finding.devices, [edit.after for edit in finding.edits]


def test_a_gradient_to_begin_with_on_the_wrong_device_is_explained(run: Run) -> None:
    rule, name, cause, devices, _ = run(wrong_seed)
    assert (rule, name, cause) == ("device-mismatch", "torch.ones(3)", "created-without-device")
    assert devices == ("accel:0", "cpu")


def waits_asked_for() -> tuple[list[tuple[str, str, str]], list[tuple[object, ...]]]:
    with devtrace.record() as recording:
        for _ in range(12):
            x = torch.ones(4, device="accel:0")
            torch.accelerator.synchronize()
            x += 1
    assert broken_rule(recording.trace) is None
    report = recording.report
    ops = {(op.name, op.kind, str(op.device)) for op in report.trace.ops if "synchronize" in op.name}
    found: list[tuple[object, ...]] = [(each.rule, each.severity, each.count, each.message) for each in report.findings]
    return sorted(ops), found


def test_a_wait_that_the_program_asks_for_is_counted_and_is_no_alarm(run: Run) -> None:
    ops, found = run(waits_asked_for)
    assert ops == [("accelerator.synchronize", "sync", "accel:0")]
    message = "The host waited for accel:0 12 times here, as this line asks for."
    assert found == [("host-sync", "note", 12, message)]


def block(device: str) -> None:
    x = torch.tensor([1.0, 2.0], device=device)
    x[[0, 1]].sum().item()
    torch.accelerator.synchronize()
    (x + 1).cpu()


def expected() -> list[str]:
    errors = []
    for device, limits in (("accel:0", (3, 2)), ("accel", (3, 2)), ("accel:0", (2, 1)), ("accel:1", (9, 9))):
        try:
            with devtrace.expect(device, copies=limits[0], syncs=limits[1]):
                block("accel:0")
            errors.append("")
        except devtrace.DeviceError as error:
            errors.append(
                " ".join(re.findall(r"[a-z-]+: got [^;]*", " ".join([str(error), *getattr(error, "__notes__", [])])))
            )
    return errors


def test_expect_counts_copies_and_waits_and_knows_devices_by_torchs_own_names(run: Run) -> None:
    exact, any_index, too_many, elsewhere = run(expected)
    assert (exact, any_index) == ("", "")
    assert too_many == "syncs-unexpected: got 2 syncs copies-unexpected: got 3 copies"
    assert elsewhere.startswith("computed-elsewhere: got ")


def options_and_environment() -> tuple[str | None, str, str, str]:
    with pytest.raises(devtrace.DevtraceError) as refused:
        usage.cell_options("--expect acel:1")
    with devtrace.record(expect="acel:1") as recording:
        torch.ones(2) + 1
    return usage.cell_options("--expect accel:1").expect, str(refused.value), recording.report.text, describe()


def test_the_flag_and_the_check_know_the_device(run: Run) -> None:
    accepted, refused, noted, environment = run(options_and_environment)
    assert accepted == "accel:1"
    assert refused.startswith("expect-value: got --expect acel:1; ")
    assert "torch knows no such device" in noted
    lines = dict(line.split(maxsplit=1) for line in environment.splitlines())
    assert lines["real"] == "cpu, accel:0, accel:1"
    assert lines["chosen"].endswith("; accel by `torch.accelerator.current_accelerator()`")


def inventory() -> list[dict[str, Any]]:
    model = nn.Linear(4, 2).to("accel:1")
    steps = listing({"model": model, "batch": torch.ones(2, 4), "x": torch.ones(3, device="accel:0")})
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: list[dict[str, Any]] = done.value["devices"]
            return found


def test_the_panel_lists_the_devices(run: Run) -> None:
    assert [(row["device"], row["simulated"], row["bytes"]) for row in run(inventory)] == [
        ("cpu", False, 32),
        ("accel:0", False, 12),
        ("accel:1", False, 40),
    ]


def surroundings() -> list[object]:
    gc.collect()
    memory = [accelerator.load().memory_allocated(index) for index in range(2)]
    return [torch._C._len_torch_dispatch_stack(), threading.enumerate(), memory, nn.Module.__call__, torch.ctc_loss]


def both_ways() -> tuple[list[bytes], list[bytes], bool]:
    plain = [each.numpy().tobytes() for each in fit()]
    before = surroundings()
    with devtrace.record():
        traced = [each.numpy().tobytes() for each in fit()]
    return plain, traced, surroundings() == before


def test_training_gives_the_same_bits_and_leaves_no_thread_mode_or_tensor_behind(run: Run) -> None:
    plain, traced, same = run(both_ways)
    assert traced == plain
    assert same


@pytest.fixture(scope="module")
def genuine(run: Run) -> dict[str, one_liners.Seen]:
    found: dict[str, one_liners.Seen] = run(functools.partial(one_liners.seen, "accel:0"))
    return found


@pytest.fixture(scope="module")
def simulated(forks: Any) -> dict[str, one_liners.Seen]:
    with Pool(1, context=forks) as pool:
        found: dict[str, one_liners.Seen] = pool.apply_async(one_liners.seen_simulated).get(timeout=280)
    return found


def test_what_each_one_liner_copies_and_waits_for(genuine: dict[str, one_liners.Seen]) -> None:
    assert {code: seen.carried for code, seen in genuine.items()} == one_liners.GENUINE


def test_simulated_devices_copy_and_wait_likewise_but_where_cuda_is_known_to(
    simulated: dict[str, one_liners.Seen],
) -> None:
    of_cuda = {code: carried for code, (carried, _) in one_liners.OF_CUDA.items()}
    assert {code: seen.carried for code, seen in simulated.items()} == one_liners.GENUINE | of_cuda
    assert all(one_liners.GENUINE[code] != carried for code, carried in of_cuda.items())


def test_simulated_devices_run_the_same_ops_but_where_the_reason_is_known(
    genuine: dict[str, one_liners.Seen], simulated: dict[str, one_liners.Seen]
) -> None:
    assert {code for code in genuine if genuine[code].ops != simulated[code].ops} == set(one_liners.OTHER_OPS)
