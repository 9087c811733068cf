"""Which turn of a comprehension failed: what an error takes along is what the comprehension had, on every Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from devtrace.runtime.tracebacks import entries_of
from devtrace.source.comprehension_iteration import lost_variables
from devtrace.source.parsing import node_of


class Part:
    """A value that mixes with none of another kind, as a tensor of another device."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __add__(self, other: Part) -> Part:
        assert self.kind == other.kind
        return self

    def alone(self) -> Part:
        raise RuntimeError


A, B = Part("a"), Part("b")
ROWS = [A, B]
PAIRS = {"b": [B, A]}


def in_order() -> Any:
    return [A + row for row in ROWS]


def of_a_view() -> Any:
    batch = {"x": A, "y": B}
    return {name: A + row for name, row in batch.items()}


def side_by_side() -> Any:
    row = A
    return [row] and [row + other for row, other in zip([A, A], ROWS, strict=True)]


def one_in_another() -> Any:
    return [[row + other for other in ROWS] for row in ROWS]


def sorted_first() -> Any:
    return {A + row for row in sorted(ROWS, key=lambda each: each.kind)}


def handed_on() -> Any:
    return [row.alone() for row in PAIRS["b"]]


def of_its_source() -> Any:
    return [row for row in [A + other for other in ROWS]]  # noqa: C416


def known(program: Callable[[], Any]) -> dict[str, Any]:
    """Return the variables of the program's innermost frame as the error left them, and those that it lost."""
    try:
        program()
    except (AssertionError, RuntimeError) as error:
        entries = [each for each in entries_of(error) if each.tb_frame.f_code.co_filename == __file__][1:]
    own, below = entries[-2:]
    assert below.tb_frame.f_code.co_name in ("__add__", "alone")
    at = node_of(own.tb_frame.f_code, own.tb_lasti)
    lost = lost_variables(own.tb_frame, at, below.tb_frame, lambda each: getattr(each, "kind", None))
    above = entries[0].tb_frame
    if above is not own.tb_frame:  # a comprehension that has a frame has lost nothing, nor has the one around it
        assert lost == {}
        assert lost_variables(above, node_of(above.f_code, entries[0].tb_lasti), own.tb_frame, str) == {}
    return {**own.tb_frame.f_locals, **lost}


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (in_order, {"row": B}),
        (of_a_view, {"name": "y", "row": B}),
        (side_by_side, {"row": A, "other": B}),
        (one_in_another, {"row": A, "other": B}),
        (sorted_first, {"row": B}),
        (of_its_source, {"other": B}),
    ],
)
def test_the_variables_of_a_comprehension_are_those_of_the_turn_that_failed_on_every_python(
    program: Callable[[], Any], expected: dict[str, Any]
) -> None:
    found = known(program)
    assert {name: found.get(name) for name in expected} == expected


def test_the_turn_is_the_one_whose_value_the_frame_below_has_on_every_python() -> None:
    assert "row" not in known(of_its_source)
    assert known(handed_on)["row"] is B


def test_where_it_may_be_any_turn_no_variable_is_claimed() -> None:
    try:
        [int(row) for row in ROWS]  # type: ignore[call-overload]
    except TypeError as error:
        own = entries_of(error)[-1]
    at = node_of(own.tb_frame.f_code, own.tb_lasti)
    assert lost_variables(own.tb_frame, at, None, lambda each: getattr(each, "kind", None)) == {}
