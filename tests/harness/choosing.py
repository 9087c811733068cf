"""Which tests `make test` asks, and which only `make breadth`: of what asks the same of many programs, a part.

A test that has `one_in(N)` leaves all but its first case and every N-th after it to `make breadth`. So does a case that
has `another` with itself. CI runs both: nothing goes unasked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

KINDS: Final = frozenset({"e2e", "foreign", "notebook", "wheel", "real"})
"""Marks of what a target of its own runs."""


def sample(items: Iterable[pytest.Item], one_in: int) -> list[pytest.Item]:
    """Keep the first case of each test, and every `one_in`-th after it."""
    return [item for each in cases_of(items) for item in each[::one_in]]


def cases_of(items: Iterable[pytest.Item]) -> list[list[pytest.Item]]:
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [*cases.values()]


def mark_breadth(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that `one_in(N)` and `another` leave to `make breadth`; refuse a test of two targets."""
    for cases in cases_of(items):
        kinds = KINDS & {mark.name for item in cases for mark in item.iter_markers()}
        if len(kinds) > 1:
            raise pytest.UsageError(f"{cases[0].nodeid} is marked for more than one target: {', '.join(sorted(kinds))}")
        mark = cases[0].get_closest_marker("one_in")
        asked = {*cases[:: mark.args[0] if mark else 1]}
        for item in cases:
            if item not in asked or item.get_closest_marker("another"):
                item.add_marker(pytest.mark.breadth)
