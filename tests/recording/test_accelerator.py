"""Recording on a genuine device, which has threads of autograd's own and data that no mode sees come.

To register the device is for a process's whole life, so one process of their own runs what the tests ask.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from typing import Any, TypeVar

import pytest

import accelerator
import needs
from accelerator import one_liners, questions

T = TypeVar("T")
Run = Callable[[Callable[[], Any]], Any]


@pytest.fixture(scope="module")
def forks() -> Any:
    missing = accelerator.why_not()
    needs.present(not missing, missing)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "devtrace.recording.recording", "numpy.ma"])
    return context


@pytest.fixture(scope="module")
def run(forks: Any) -> Iterator[Run]:
    """Call a function of `questions` where `accel:0` and `accel:1` are devices."""
    with Pool(1, initializer=questions.load, context=forks) as pool:
        yield lambda function: pool.apply_async(function).get(timeout=280)


def test_data_of_the_host_that_torch_makes_a_tensor_of_on_a_device_is_a_copy(run: Run) -> None:
    def copied(bytes: int) -> list[tuple[str, str, int, str]]:
        return [("cpu", "accel:1", bytes, "copy")]

    assert run(questions.lists) == [copied(8), copied(8), copied(4), copied(16), copied(16), [], [], []]


def test_every_op_of_a_backward_pass_on_a_thread_of_the_device_has_a_line(run: Run) -> None:
    plain, repeated = run(questions.sites_of_backward)
    assert (plain[1], repeated[1]) == (0, 0)
    assert "loss.backward()" in plain[0]
    assert repeated[2] == ["aten.addmm"]


def test_a_thread_of_autograd_s_is_none_of_python_s(run: Run) -> None:
    known, followed = run(questions.names_of_threads)
    assert not [name for name in known if name.startswith("Dummy")]
    assert followed == ["MainThread", "autograd"]


def test_an_op_of_a_backward_pass_is_of_the_module_whose_op_it_differentiates(run: Run) -> None:
    found = run(questions.modules_of_backward)
    assert {("aten.mm", "model.2"), ("aten.mm", "model.0"), ("aten.threshold_backward", "model.1")} <= found


def test_a_gradient_to_begin_with_on_the_wrong_device_is_explained(run: Run) -> None:
    rule, name, cause, devices, _ = run(questions.wrong_seed)
    assert (rule, name, cause) == ("device-mismatch", "torch.ones(3)", "created-without-device")
    assert devices == ("accel:0", "cpu")


def test_a_wait_that_the_program_asks_for_is_counted_and_is_no_alarm(run: Run) -> None:
    ops, found = run(questions.waits_asked_for)
    assert ops == [("accelerator.synchronize", "sync", "accel:0")]
    message = "`torch.accelerator.synchronize()` made the CPU wait for accel:0 12 times, as the line asks for."
    assert found == [("host-sync", "note", 12, message)]


def test_expect_counts_copies_and_waits_and_knows_devices_by_torchs_own_names(run: Run) -> None:
    exact, any_index, too_many, elsewhere = run(questions.expected)
    assert (exact, any_index) == ("", "")
    assert too_many == "syncs-unexpected: got 2 syncs copies-unexpected: got 3 copies"
    assert elsewhere.startswith("computed-elsewhere: got ")


def test_the_flag_and_the_check_know_the_device(run: Run) -> None:
    accepted, refused, noted, environment = run(questions.options_and_environment)
    assert accepted == "accel:1"
    assert refused.startswith("expect-value: got --expect acel:1; ")
    assert "torch knows no such device" in noted
    lines = dict(line.split(maxsplit=1) for line in environment.splitlines())
    assert lines["real"] == "cpu, accel:0, accel:1"
    assert lines["chosen"].endswith("; accel by `torch.accelerator.current_accelerator()`")


def test_the_panel_lists_the_devices(run: Run) -> None:
    assert [(row["device"], row["simulated"], row["bytes"]) for row in run(questions.inventory)] == [
        ("cpu", False, 32),
        ("accel:0", False, 12),
        ("accel:1", False, 40),
    ]


def test_training_gives_the_same_bits_and_leaves_no_thread_mode_or_tensor_behind(run: Run) -> None:
    plain, traced, same = run(questions.both_ways)
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


def test_simulated_devices_run_the_same_ops_but_where_the_reason_is_known(
    genuine: dict[str, one_liners.Seen], simulated: dict[str, one_liners.Seen]
) -> None:
    assert {code for code in genuine if genuine[code].ops != simulated[code].ops} == set(one_liners.OTHER_OPS)
