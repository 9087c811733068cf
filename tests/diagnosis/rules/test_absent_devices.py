"""A device that does not exist, asked for in any spelling: which it is, and who says so."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

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


def made_by_a_partial() -> None:
    zeros = partial(torch.zeros, dtype=torch.float32, device=torch.device("cuda:3"))
    zeros(4)


SPARE = "cuda:8"


def by_a_constant_of_the_file() -> None:
    nn.Linear(2, 2).to(SPARE)


def of_many_counted() -> None:
    nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=[*range(3)])


def of_a_list_that_is_gone_through() -> None:
    shards = [torch.device("cuda", index) for index in range(2)]
    for shard in shards:
        torch.ones(2).to(shard)


def of_a_loop_over_names() -> None:
    for name in ("cuda:0", "cuda:7"):
        torch.zeros(1, device=name)


def by_a_flag() -> None:
    parser = ArgumentParser()
    parser.add_argument("-d", "--run-on", default="cuda:4")
    options = parser.parse_args([])
    torch.ones(2, device=options.run_on)


def by_a_flag_with_a_number() -> None:
    parser = ArgumentParser()
    parser.add_argument("--local-gpu", dest="gpu", type=int, default=2)
    options = parser.parse_args([])
    torch.cuda.set_device(options.gpu)


@dataclass
class Settings:
    """A dataclass with a device as its default."""

    put_on: str = "cuda:9"


def by_a_device_of_a_setting() -> None:
    settings = Settings()
    chosen = torch.device(settings.put_on)
    torch.ones(2).to(chosen)


CASES = [
    (made_by_a_partial, "cuda:3", 'zeros = partial(torch.zeros, dtype=torch.float32, device=torch.device("cuda:3"))'),
    (by_a_constant_of_the_file, "cuda:8", 'SPARE = "cuda:8"'),
    (of_many_counted, "cuda:1", ""),
    (of_a_list_that_is_gone_through, "cuda:1", 'shards = [torch.device("cuda", index) for index in range(2)]'),
    (of_a_loop_over_names, "cuda:7", 'for name in ("cuda:0", "cuda:7"):'),
    (by_a_flag, "cuda:4", 'parser.add_argument("-d", "--run-on", default="cuda:4")'),
    (by_a_flag_with_a_number, "cuda:2", 'parser.add_argument("--local-gpu", dest="gpu", type=int, default=2)'),
    (by_a_device_of_a_setting, "cuda:9", 'put_on: str = "cuda:9"'),
    (in_a_loop, "cuda:1", 'chosen = f"cuda:{number}"'),
    (in_the_call, "cuda:5", ""),
    (by_percent, "cuda:4", ""),
    (by_format, "cuda:4", ""),
    (by_plus, "cuda:4", ""),
    (by_kind_and_number, "cuda:2", "index = 2"),
    (of_a_comprehension, "cuda:1", ""),
    (as_a_number, "cuda:7", ""),
    (of_a_tensor, "cuda:7", ""),
    (as_a_keyword, "cuda:3", ""),
    (by_a_variable, "cuda:3", "local_rank = 3"),
    (by_settings, "cuda:2", 'settings = {"seed": 17, "gpu": 2}'),
    (by_a_class, "cuda:9", "gpu = 9"),
    (by_an_attribute, "cuda:6", 'self.device = torch.device("cuda:6")'),
    (within_a_device, "cuda:7", "with torch.device(7):"),
    (within_a_device_by_name, "cuda:4", 'chosen = "cuda:4"'),
    (within_a_current_device, "cuda:7", ""),
    (by_default, "cuda:5", 'torch.set_default_device("cuda:5")'),
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


def test_a_flag_that_the_command_has_is_set_there_not_by_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["train.py", "--run-on=cuda:4"])
    finding = found(by_a_flag)
    assert (lines_of(finding), finding.help) == ([], "set `options.run_on` to a device that exists; it is cuda:4 here")


def without_a_colon() -> None:
    chosen = "cuda0"
    torch.ones(2).to(chosen)


def as_others_call_it() -> None:
    nn.Linear(2, 2).to(device="gpu")


def as_others_number_it() -> None:
    torch.zeros(2, device=torch.device("gpu:0"))


def in_capitals() -> None:
    nn.Linear(2, 2).to("CUDA")


def with_a_dash() -> None:
    chosen = {"train": "cuda-0", "test": "cpu"}
    torch.zeros(2).to(chosen["train"])


def with_a_number_that_is_not_there() -> None:
    torch.zeros(2, device="cuda4")


def of_a_number_below_zero() -> None:
    torch.zeros(2, device="cuda:-1")


def of_a_variable_below_zero() -> None:
    gpu = -1
    chosen = torch.device(f"cuda:{gpu}")
    torch.zeros(2, device=chosen)


def of_an_argument_below_zero(gpu: int = -1) -> None:
    torch.ones(2).to("cuda:%d" % gpu)  # noqa: UP031


def computed_without_a_colon() -> None:
    index = 0
    nn.Linear(2, 2).to(f"cuda{index}")


def added_without_a_colon() -> None:
    index = 0
    torch.ones(2).to("gpu" + str(index))


def by_a_misspelt_default() -> None:
    parser = ArgumentParser()
    parser.add_argument("--device", default="gpu")
    options = parser.parse_args([])
    nn.Linear(2, 2).to(options.device)


def of_no_kind() -> None:
    nn.Linear(2, 2).to("auto")


def computed_of_no_kind() -> None:
    kind = "accelerator"
    torch.zeros(2, device=f"{kind}:0")


MISSPELT = [
    (of_no_kind, "auto", ""),
    (computed_of_no_kind, "accelerator:0", ""),
    (without_a_colon, "cuda0", 'chosen = "cuda0"'),
    (as_others_call_it, "gpu", ""),
    (as_others_number_it, "gpu:0", ""),
    (in_capitals, "CUDA", ""),
    (with_a_dash, "cuda-0", 'chosen = {"train": "cuda-0", "test": "cpu"}'),
    (with_a_number_that_is_not_there, "cuda4", ""),
    (of_a_number_below_zero, "cuda:-1", ""),
    (of_a_variable_below_zero, "cuda:-1", ""),
    (of_an_argument_below_zero, "cuda:-1", ""),
    (computed_without_a_colon, "cuda0", ""),
    (added_without_a_colon, "gpu0", ""),
    (by_a_misspelt_default, "gpu", 'parser.add_argument("--device", default="gpu")'),
]


@pytest.mark.parametrize(("program", "text", "said"), MISSPELT, ids=[each[0].__name__ for each in MISSPELT])
@pytest.mark.parametrize("explained", [found, untraced])
def test_a_text_that_names_no_device_is_named_with_the_line_that_says_so(
    program: Callable[[], None], text: str, said: str, explained: Callable[[Callable[[], None]], Finding]
) -> None:
    finding = explained(program)
    message = f"`{text}` is not the name of a device; there is cuda:0."
    assert (finding.rule, finding.message) == ("device-refused", message)
    assert (lines_of(finding), finding.edits) == ([said] * bool(said), ())
    assert finding.help == sentence("device-refused.misspelt-help")
