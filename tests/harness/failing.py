"""A program, given as a function, that fails on a simulated device, and what is expected of its finding.

    @fails(cause="never-moved", name="rows", edits=["rows = torch.rand(2, 4).to(device)"])
    def test_a_batch_that_stayed_behind() -> None:
        ...                             # the program itself: the test is what was said of its error

What is expected is written by the words of `told`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from typing import Any, Literal, ParamSpec

import pytest

import devtrace
from devtrace.api.results import Report
from devtrace.diagnosis.findings import Culprit, Finding, Site

P = ParamSpec("P")
Mode = Literal["recorded", "untraced"]
BOTH: tuple[Mode, ...] = ("recorded", "untraced")
Raised = type[Exception] | tuple[type[Exception], ...]
OF_TORCH: Raised = (RuntimeError, TypeError)


def report_of(program: Callable[[], object], simulate: str = "cuda:2", raises: Raised = OF_TORCH) -> Report:
    """Return the report of a program that was recorded."""
    with pytest.raises(raises), devtrace.record(simulate=simulate) as recording:
        program()
    return recording.report


def untraced(program: Callable[[], object], simulate: str = "cuda:2", raises: Raised = OF_TORCH) -> Report:
    """Return the report on a program's error that nobody recorded."""
    with devtrace.simulate(simulate) if simulate else nullcontext():
        with pytest.raises(raises) as raised:
            program()
        return devtrace.explain(raised.value)


def error_of(
    program: Callable[[], object], simulate: str = "cuda:2", mode: Mode = "recorded", raises: Raised = OF_TORCH
) -> Finding:
    """Return what is said of a program's error: the first finding, and the only error."""
    report = (report_of if mode == "recorded" else untraced)(program, simulate, raises)
    (error,) = [finding for finding in report.findings if finding.severity == "error"]
    assert error is report.findings[0]
    return error


explained = functools.partial(error_of, mode="untraced")
both = pytest.mark.parametrize("found", [error_of, explained])
"""Asks a test of what is said of a program that was recorded, and of one that was not."""


def fails(
    *modes: Mode, simulate: str = "cuda:2", raises: Raised = OF_TORCH, **expected: Any
) -> Callable[[Callable[P, object]], Callable[P, None]]:
    """Make of a program the test that what is said of its error is what is expected, recorded or in these modes."""

    def test_of(program: Callable[P, object]) -> Callable[P, None]:
        @functools.wraps(program)
        def test(*args: P.args, **kwargs: P.kwargs) -> None:
            for mode in modes or BOTH[:1]:
                assert_tells(error_of(lambda: program(*args, **kwargs), simulate, mode, raises), **expected)

        return test

    return test_of


def assert_tells(finding: Finding, **expected: Any) -> None:
    found = told(finding)
    assert {word: found[word] for word in expected} == expected


def told(finding: Finding) -> dict[str, Any]:
    """Return all that a finding says, sites by the text of their lines and edits by what they write."""
    culprit = finding.culprit
    of_culprit = {field.name: getattr(culprit, field.name) for field in fields(Culprit)} if culprit else {}
    parts = of_culprit | {field.name: getattr(finding, field.name) for field in fields(Finding)}
    sites = {word: part and part.text for word, part in parts.items() if word in ("site", "born", "moved")}
    return {**parts, **sites, "edits": [edit.after.strip() for edit in finding.edits]}


class Text:
    """A text that begins so, with all of some words in it and none of others."""

    def __init__(self, *words: str, begins: str = "", ends: str = "", lacks: tuple[str, ...] = ()) -> None:
        self.words, self.begins, self.ends, self.lacks = words, begins, ends, lacks

    def __eq__(self, text: object) -> bool:
        return (
            isinstance(text, str)
            and text.startswith(self.begins)
            and text.endswith(self.ends)
            and all(word in text for word in self.words)
            and not any(word in text for word in self.lacks)
        )

    def __repr__(self) -> str:
        return f"Text{self.words, self.begins, self.ends, self.lacks}"

    __hash__ = None  # type: ignore[assignment]


def culprit_of(finding: Finding) -> Culprit:
    assert finding.culprit is not None
    return finding.culprit


def birth_of(finding: Finding) -> Site:
    """Return the line at which a finding's tensor was made."""
    born = culprit_of(finding).born
    assert born is not None
    return born


def edits_of(finding: Finding) -> list[str]:
    """Return the lines that a finding's edits write."""
    return [line.strip() for edit in finding.edits for line in edit.after.splitlines()]
