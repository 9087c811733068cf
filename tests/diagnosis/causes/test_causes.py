"""Causes: each has all its words, each small program its cause, and the order of predicates is that of certainty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis import causes
from devtrace.diagnosis.causes import ordered
from devtrace.diagnosis.causes.ordered import PREDICATES
from devtrace.diagnosis.rules.error_rules import rule_slugs
from devtrace.diagnosis.slugs import CASTS, CauseSlug, RuleSlug
from devtrace.dtypes.causes import CAUSES
from devtrace.words.catalogue import sentence
from failing import culprit_of, error_of

OF_RULES = {"host-boundary", "generator-device"}
OF_DTYPES_ALONE = {*CASTS.values(), "numpy-boundary", "autocast-off", "python-number", "target-dtype"}


def test_every_cause_that_predicates_claim_has_its_file() -> None:
    files = {path.stem for path in Path(causes.__file__).parent.glob("*.py")} - {"__init__", "ordered", "of_dtypes"}
    others = {*OF_DTYPES_ALONE, *OF_RULES, "unknown"}
    assert files == {slug.replace("-", "_") for slug in get_args(CauseSlug) if slug not in others}
    assert set(rule_slugs()) == set(get_args(RuleSlug)) - {"expectation"}


@pytest.mark.parametrize("slug", get_args(CauseSlug))
def test_every_cause_has_a_meaning_and_advice(slug: CauseSlug) -> None:
    assert sentence(f"{slug}.meaning")
    assert sentence(f"{slug}.helps")
    assert sentence(f"{slug}.advice", expected="cuda:0")
    assert sentence(f"{slug}.created") or slug == "unknown"


def test_no_predicate_is_asked_twice() -> None:
    assert len(set(CAUSES.predicates)) == len(CAUSES.predicates)
    assert len(set(PREDICATES)) == len(PREDICATES)


def a_head_after_the_move() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to("cuda:0")
    model[1] = nn.Linear(4, 3)
    model(torch.rand(2, 4, device="cuda:0"))


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = torch.ones(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x) * self.scale
        return y


def a_plain_attribute() -> None:
    Scaled().to("cuda:0")(torch.rand(2, 4, device="cuda:0"))


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.rest = [nn.Linear(4, 4)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.rest[0](self.first(x))
        return y


def a_list_of_layers() -> None:
    Listed().to("cuda:0")(torch.rand(2, 4, device="cuda:0"))


class Masked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(4)


def a_factory_in_a_call() -> None:
    Masked()(torch.rand(2, 4, device="cuda:0"))


def a_model_that_stayed() -> None:
    model = nn.Linear(4, 4)
    model(torch.rand(2, 4, device="cuda:0"))


def a_moved_copy_that_nobody_kept() -> None:
    x = torch.rand(4)
    x.to("cuda:0")
    x + torch.rand(4, device="cuda:0")


def state_of_an_optimizer() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9, lr=0.1)
    optimizer.state[model.weight]["momentum_buffer"] = torch.rand(4, 4)
    model.to("cuda:0")
    model(torch.rand(2, 4, device="cuda:0")).sum().backward()
    optimizer.step()


def a_copy_of_a_parameter_before_the_move() -> None:
    model = nn.Linear(4, 4)
    early = model.weight.detach().clone()
    model.to("cuda:0")
    model.weight.detach() - early


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.cache: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cache is None:
            self.cache = torch.ones(4)
        y: torch.Tensor = self.layer(x) * self.cache
        return y


def a_cache_of_before_the_move() -> None:
    model = Cached()
    model(torch.rand(2, 4))
    model.to("cuda:0")(torch.rand(2, 4, device="cuda:0"))


def a_cache_of_after_the_move() -> None:
    Cached().to("cuda:0")(torch.rand(2, 4, device="cuda:0"))


def a_module_that_was_sent_away() -> None:
    model = nn.Linear(4, 4).to("cuda:0")
    model.cpu()
    model(torch.rand(2, 4, device="cuda:0"))


def a_tensor_on_a_device_by_name() -> None:
    x = torch.rand(4, device="cuda:0") + torch.rand(4, device="cuda:0")
    x + torch.rand(4, device="cuda:1")


def numpy_of_a_device() -> None:
    torch.rand(4, device="cuda:0").numpy()


def a_generator_of_the_host() -> None:
    generator = torch.Generator()
    torch.rand(4, generator=generator, device="cuda:0")


@pytest.mark.parametrize(
    ("program", "cause", "certainty"),
    [
        (a_head_after_the_move, "attached-after-move", "seen"),
        (a_plain_attribute, "not-registered", "seen"),
        (a_list_of_layers, "not-registered", "seen"),
        (a_factory_in_a_call, "created-without-device", "seen"),
        (a_cache_of_after_the_move, "created-without-device", "seen"),
        (a_model_that_stayed, "never-moved", "seen"),
        (a_moved_copy_that_nobody_kept, "never-moved", "seen"),
        (state_of_an_optimizer, "never-moved", "seen"),
        (a_copy_of_a_parameter_before_the_move, "stale-copy", "seen"),
        (a_cache_of_before_the_move, "stale-copy", "seen"),
        (a_module_that_was_sent_away, "wrong-device", "seen"),
        (a_tensor_on_a_device_by_name, "wrong-device", "seen"),
        (numpy_of_a_device, "host-boundary", "seen"),
        (a_generator_of_the_host, "generator-device", "seen"),
    ],
)
def test_a_small_program_has_its_cause(program: Callable[[], object], cause: str, certainty: str) -> None:
    finding = error_of(program)
    assert (finding.cause, culprit_of(finding).certainty) == (cause, certainty)


def test_a_remark_of_the_cause_is_beside_the_line_that_created_the_tensor() -> None:
    with pytest.raises(RuntimeError), devtrace.record(simulate="cuda:1") as recording:
        a_head_after_the_move()
    text = recording.report.text
    assert [line[-14:] for line in text.splitlines() if line.startswith("  Created")] == ["after the move"]
    assert ".to(" in next(line for line in text.splitlines() if line.startswith("  Missed by"))


def test_a_predicate_that_fails_leaves_torchs_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> None:
        raise KeyError("made to fail")

    monkeypatch.setattr(ordered, "OF_DEVICE", ordered.OF_DEVICE._replace(predicates=(broken,)))
    finding = error_of(a_model_that_stayed)
    assert finding.cause == "unknown"
    assert "made to fail" in finding.message


def test_without_any_evidence_the_cause_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "OF_DEVICE", ordered.OF_DEVICE._replace(predicates=()))
    finding = error_of(a_model_that_stayed)
    assert finding.cause == "unknown"
    assert finding.help
