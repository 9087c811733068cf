"""A device that does not exist, asked for in any spelling: which it is, and who says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding
from devtrace.words.catalogue import sentence

pytestmark = pytest.mark.one_in(6)

ONE, TWO = "cuda:1", "cuda:2"


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


def lines_of(finding: Finding) -> list[str]:
    """Return the first line of each statement that a finding shows beside the one that fails."""
    return [line.site.text.splitlines()[0] for line in finding.lines]


def in_a_loop() -> None:
    for number in range(3):
        chosen = f"cuda:{number}"
        torch.ones(2, device=chosen)


def in_the_call() -> None:
    rank = 5
    nn.Linear(2, 2).to(f"cuda:{rank}")


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


def within_a_current_device() -> None:
    with torch.cuda.device(7):
        torch.ones(2, device="cuda")


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


SPARE = "cuda:8"


def by_a_constant_of_the_file() -> None:
    nn.Linear(2, 2).to(SPARE)


def of_a_list_that_is_gone_through() -> None:
    shards = [torch.device("cuda", index) for index in range(2)]
    for shard in shards:
        torch.ones(2).to(shard)


def of_a_loop_over_names() -> None:
    for name in ("cuda:0", "cuda:7"):
        torch.zeros(1, device=name)


@dataclass
class Settings:
    """A dataclass with a device as its default."""

    put_on: str = "cuda:9"


def by_a_device_of_a_setting() -> None:
    settings = Settings()
    chosen = torch.device(settings.put_on)
    torch.ones(2).to(chosen)


CASES = [
    (by_a_constant_of_the_file, "cuda:8", 'SPARE = "cuda:8"'),
    (of_a_list_that_is_gone_through, "cuda:1", 'shards = [torch.device("cuda", index) for index in range(2)]'),
    (of_a_loop_over_names, "cuda:7", 'for name in ("cuda:0", "cuda:7"):'),
    (by_a_device_of_a_setting, "cuda:9", 'put_on: str = "cuda:9"'),
    (in_a_loop, "cuda:1", 'chosen = f"cuda:{number}"'),
    (in_the_call, "cuda:5", ""),
    (by_kind_and_number, "cuda:2", "index = 2"),
    (of_a_comprehension, "cuda:1", ""),
    (as_a_number, "cuda:7", ""),
    (of_a_tensor, "cuda:7", ""),
    (as_a_keyword, "cuda:3", ""),
    (by_a_variable, "cuda:3", "local_rank = 3"),
    (by_settings, "cuda:2", 'settings = {"seed": 17, "gpu": 2}'),
    (by_a_class, "cuda:9", "gpu = 9"),
    (by_an_attribute, "cuda:6", 'self.device = torch.device("cuda:6")'),
    (within_a_current_device, "cuda:7", ""),
    (of_many, "cuda:7", ""),
    (of_a_tuple, "cuda:1", ""),
    (of_many_by_name, "cuda:1", "gpus = [0, 1, 2]"),
    (asked_of_cuda, "cuda:7", ""),
    (streamed, "cuda:3", ""),
    (drawn, "cuda:4", ""),
    (by_an_argument, "cuda:3", 'moved(torch.ones(1), "cuda:3")'),
    (by_a_variable_of_a_caller, "cuda:3", 'spare = "cuda:3"'),
    (by_a_default, "cuda:2", '"cuda:2"'),
]


@pytest.mark.parametrize(("program", "device", "said"), CASES, ids=[each[0].__name__ for each in CASES])
@pytest.mark.parametrize("explained", [found, untraced])
def test_a_device_that_does_not_exist_is_named_and_the_line_that_says_so_where_another_fails(
    program: Callable[[], None], device: str, said: str, explained: Callable[[Callable[[], None]], Finding]
) -> None:
    finding = explained(program)
    assert (finding.rule, finding.message) == ("device-refused", f"{device} does not exist; there is cuda:0.")
    assert (lines_of(finding), finding.edits) == ([said] * bool(said), ())
    assert re.search(rf"^name a device that exists$|^set `.+` to .+; it is (cuda:)?{device[5:]} here$", finding.help)


def test_a_parameter_has_the_device_of_its_default() -> None:
    assert [(line.label, line.site.text) for line in found(by_a_default).lines] == [("Created", '"cuda:2"')]


def test_of_several_devices_the_one_that_does_not_exist_is_named() -> None:
    finding = found(of_many_by_name, TWO)
    assert finding.message == "cuda:2 does not exist; there are cuda:0 and cuda:1."
    assert finding.help == "name a device that exists"


def test_a_number_from_elsewhere_is_asked_for_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "2")
    rank = int(__import__("os").environ["LOCAL_RANK"])
    finding = found(lambda: torch.cuda.set_device(rank))
    assert finding.help == "set `rank` to a device that exists; it is 2 here"


def without_a_colon() -> None:
    chosen = "cuda0"
    torch.ones(2).to(chosen)


def as_others_number_it() -> None:
    torch.zeros(2, device=torch.device("gpu"))


def in_capitals() -> None:
    nn.Linear(2, 2).to("CUDA")


def of_a_number_below_zero() -> None:
    torch.zeros(2, device="cuda:-1")


def of_no_kind() -> None:
    nn.Linear(2, 2).to("auto")


MISSPELT = [
    (of_no_kind, "auto"),
    (without_a_colon, "cuda0"),
    (as_others_number_it, "gpu"),
    (in_capitals, "CUDA"),
    (of_a_number_below_zero, "cuda:-1"),
]


@pytest.mark.parametrize(("program", "text"), MISSPELT, ids=[each[0].__name__ for each in MISSPELT])
@pytest.mark.parametrize("explained", [found, untraced])
def test_a_text_that_names_no_device_is_quoted(
    program: Callable[[], None], text: str, explained: Callable[[Callable[[], None]], Finding]
) -> None:
    finding = explained(program)
    message = f"`{text}` is not the name of a device; there is cuda:0."
    assert (finding.rule, finding.message) == ("device-refused", message)
    assert (lines_of(finding), finding.edits) == ([], ())
    assert finding.help == sentence("device-refused.misspelt-help")
