"""A device that does not exist, asked for in any spelling: which it is, who says so, and the line without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding

ONE, TWO = "cuda:1", "cuda:2"
MODULO = "torch.cuda.device_count()"


def found(program: Callable[[], object], simulate: str = ONE) -> Finding:
    with suppress(Exception), devtrace.record(simulate) as recording:
        program()
    (finding,) = [each for each in recording.report.findings if each.severity == "error"]
    return finding


def untraced(program: Callable[[], object], simulate: str = ONE) -> Finding:
    with devtrace.simulate(simulate):
        try:
            program()
        except Exception as error:  # noqa: BLE001 (whatever torch raises)
            (finding,) = devtrace.explain(error).findings
    return finding


def in_a_loop() -> None:
    for number in range(3):
        chosen = f"cuda:{number}"
        torch.ones(2, device=chosen)


def in_the_call() -> None:
    rank = 5
    nn.Linear(2, 2).to(f"cuda:{rank}")


def by_percent() -> None:
    shard = 4
    torch.ones(2).to("cuda:%d" % shard)  # noqa: UP031 (so do many)


def by_format() -> None:
    shard = 4
    torch.ones(2).to("cuda:{}".format(shard))  # noqa: UP032


def by_plus() -> None:
    shard = 4
    torch.ones(2).to("cuda:" + str(shard))


def by_kind_and_number() -> None:
    index = 2
    chosen = torch.device("cuda", index)
    torch.zeros(2, device=chosen)


def of_a_comprehension() -> None:
    [torch.as_tensor([1.0, 2.0], device=f"cuda:{shard}") for shard in (0, 1)]


def as_a_number() -> None:
    nn.Linear(2, 2).to(7)


def of_a_tensor() -> None:
    torch.ones(3).to(7)


def as_a_keyword() -> None:
    nn.Linear(2, 2).cuda(device=3)


def by_a_variable() -> None:
    local_rank = 3
    torch.cuda.set_device(local_rank)


def by_settings() -> None:
    settings = {"seed": 17, "gpu": 2}
    torch.ones(3).cuda(settings["gpu"], non_blocking=True)


class Config:
    """Settings of a class."""

    gpu = 9


def by_a_class() -> None:
    torch.zeros(2).cuda(Config.gpu)


class Trainer:
    """Keeps the device that it was made with."""

    def __init__(self) -> None:
        self.device = torch.device("cuda:6")

    def step(self) -> None:
        torch.zeros(2).to(self.device)


def by_an_attribute() -> None:
    Trainer().step()


def within_a_device() -> None:
    with torch.device(7):
        torch.ones(2)


def within_a_device_by_name() -> None:
    chosen = "cuda:4"
    with torch.device(chosen):
        nn.Linear(2, 2)


def within_a_current_device() -> None:
    with torch.cuda.device(7):
        torch.ones(2, device="cuda")


def by_default() -> None:
    torch.set_default_device("cuda:5")
    try:
        torch.ones(2)
    finally:
        torch.set_default_device(None)


def of_many() -> None:
    nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=[0, 7])


def of_many_by_name() -> None:
    gpus = [0, 1, 2]
    nn.DataParallel(nn.Linear(2, 2).cuda(), gpus)


def asked_of_cuda() -> None:
    torch.cuda.memory_allocated(7)


def streamed() -> None:
    torch.cuda.Stream(device=3)


def drawn() -> None:
    torch.rand(3, generator=torch.Generator(device="cuda:4"))


def moved(value: torch.Tensor, chosen: str) -> torch.Tensor:
    return value.to(chosen)


def by_an_argument() -> None:
    moved(torch.ones(1), "cuda:3")


def by_a_variable_of_a_caller() -> None:
    spare = "cuda:3"
    moved(torch.ones(1), spare)


def by_a_default(chosen: str = "cuda:2") -> None:
    nn.Linear(2, 2).to(chosen)


def of_a_tuple() -> None:
    nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=(0, 1))


CASES = [
    (in_a_loop, "cuda:1", f'chosen = f"cuda:{{number % {MODULO}}}"'),
    (in_the_call, "cuda:5", f'nn.Linear(2, 2).to(f"cuda:{{rank % {MODULO}}}")'),
    (by_percent, "cuda:4", f'torch.ones(2).to(f"cuda:{{shard % {MODULO}}}")  # noqa: UP031 (so do many)'),
    (by_format, "cuda:4", f'torch.ones(2).to(f"cuda:{{shard % {MODULO}}}")  # noqa: UP032'),
    (by_plus, "cuda:4", f'torch.ones(2).to(f"cuda:{{shard % {MODULO}}}")'),
    (by_kind_and_number, "cuda:2", "index = 0"),
    (
        of_a_comprehension,
        "cuda:1",
        f'[torch.as_tensor([1.0, 2.0], device=f"cuda:{{shard % {MODULO}}}") for shard in (0, 1)]',
    ),
    (as_a_number, "cuda:7", "nn.Linear(2, 2).to(0)"),
    (of_a_tensor, "cuda:7", "torch.ones(3).to(0)"),
    (as_a_keyword, "cuda:3", "nn.Linear(2, 2).cuda(device=0)"),
    (by_a_variable, "cuda:3", "local_rank = 0"),
    (by_settings, "cuda:2", 'settings = {"seed": 17, "gpu": 0}'),
    (by_a_class, "cuda:9", "gpu = 0"),
    (by_an_attribute, "cuda:6", 'self.device = torch.device("cuda:0")'),
    (within_a_device, "cuda:7", "with torch.device(0):"),
    (within_a_device_by_name, "cuda:4", 'chosen = "cuda:0"'),
    (within_a_current_device, "cuda:7", "with torch.cuda.device(0):"),
    (by_default, "cuda:5", 'torch.set_default_device("cuda:0")'),
    (of_many, "cuda:7", "nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=[0])"),
    (of_a_tuple, "cuda:1", "nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=(0,))"),
    (of_many_by_name, "cuda:1", "gpus = [0]"),
    (asked_of_cuda, "cuda:7", "torch.cuda.memory_allocated(0)"),
    (streamed, "cuda:3", "torch.cuda.Stream(device=0)"),
    (drawn, "cuda:4", 'torch.rand(3, generator=torch.Generator(device="cuda:0"))'),
    (by_an_argument, "cuda:3", 'moved(torch.ones(1), "cuda:0")'),
    (by_a_variable_of_a_caller, "cuda:3", 'spare = "cuda:0"'),
    (by_a_default, "cuda:2", 'def by_a_default(chosen: str = "cuda:0") -> None:'),
]


@pytest.mark.parametrize(("program", "device", "after"), CASES, ids=[each[0].__name__ for each in CASES])
@pytest.mark.parametrize("explained", [found, untraced])
def test_a_device_that_does_not_exist_is_named_and_the_code_that_names_it_is_changed(
    program: Callable[[], None], device: str, after: str, explained: Callable[[Callable[[], None]], Finding]
) -> None:
    finding = explained(program)
    assert (finding.rule, finding.message) == ("device-refused", f"{device} does not exist; there is cuda:0.")
    assert [edit.after.strip() for edit in finding.edits] == [after]


def test_a_parameter_has_the_device_of_its_default() -> None:
    assert [(line.label, line.site.text) for line in found(by_a_default).lines] == [("Created", '"cuda:2"')]


def test_of_several_devices_only_those_that_exist_stay() -> None:
    finding = found(of_many_by_name, TWO)
    assert finding.message == "cuda:2 does not exist; there are cuda:0 and cuda:1."
    assert [edit.after.strip() for edit in finding.edits] == ["gpus = [0, 1]"]


def test_a_number_from_elsewhere_is_asked_for_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "2")
    rank = int(__import__("os").environ["LOCAL_RANK"])
    finding = found(lambda: torch.cuda.set_device(rank))
    assert (finding.edits, finding.help) == ((), "set `rank` to a device that exists; it is 2 here")
