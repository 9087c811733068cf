"""An explanation ends, and lets go of what it looked at."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.explaining.reading import argument_sources, move_history
from devtrace.recording.columns.module_notes import Happening
from devtrace.recording.columns.process_history import ErrorMark, MovedModule, mark_of
from odd_programs import Scaled


@pytest.fixture(autouse=True)
def no_collector(hooked: None) -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_a_function_that_still_runs_frees_what_it_drops() -> None:
    table = torch.zeros(3)
    dead = weakref.ref(table)
    report = None
    try:
        torch.ones(3, device="cuda:0") + table
    except RuntimeError as error:
        report = devtrace.explain(error)
    del table
    assert report is not None
    assert report.findings
    assert dead() is None


def test_a_model_is_free_without_the_collector() -> None:
    model = Scaled().to("cuda:0")
    dead: list[weakref.ref[Any]] = [weakref.ref(model), weakref.ref(model.table)]
    report = None
    try:
        model(torch.ones(2, 3, device="cuda:0"))
    except RuntimeError as error:
        report = devtrace.explain(error)
    del model
    assert report is not None
    assert [finding.cause for finding in report.findings] == ["not-registered"]
    assert [each() for each in dead] == [None, None]


def test_a_function_that_wraps_itself_has_an_end() -> None:
    def own() -> None: ...

    def other() -> None: ...

    functools.wraps(own)(own)
    assert own.__dict__["__wrapped__"] is own
    assert argument_sources._parameters_before(own, other.__code__) is None
    assert argument_sources._parameters_before(functools.wraps(other)(own), other.__code__) == 0


def test_moves_in_the_handler_of_an_error_that_is_gone_are_not_of_the_one_at_its_address() -> None:
    code = test_a_function_that_wraps_itself_has_an_end.__code__

    def moved(tick: int, handling: ErrorMark | None) -> MovedModule:
        at = Happening(0, tick, -1)
        return MovedModule(weakref.ref(nn.Linear(1, 1)), None, 0, (), at, handling)

    now, elsewhere = (1, code, 8), (1, code, 4)
    handled = [now, None, elsewhere, now, now, None]
    found = move_history._last_of([moved(tick, mark) for tick, mark in enumerate(handled)], frozenset({now, None}))
    assert [each.at.tick for each in found] == [4, 3]
    assert move_history._last_of([moved(0, None), moved(1, elsewhere)], frozenset({now, None})) == []


def test_an_error_is_known_by_its_address_and_by_what_raised_it() -> None:
    def fail() -> None:
        raise RuntimeError

    def mark() -> ErrorMark | None:
        try:
            fail()
        except RuntimeError as error:
            return mark_of(error)
        return None

    found = mark()
    assert found is not None
    assert found[1] is fail.__code__
    assert mark_of(None) is mark_of(RuntimeError()) is None
