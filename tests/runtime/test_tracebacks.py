"""Our frames leave a user's traceback, and only ours."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import devtrace
from devtrace.runtime.tracebacks import hide_our_frames

PACKAGE = Path(devtrace.__file__).parent


def function(file: str, body: str) -> Callable[..., Any]:
    """A function whose code says that it is from `file`."""
    names: dict[str, Any] = {}
    exec(compile(f"def call(go_on):\n    {body}\n", file, "exec"), names)
    result: Callable[..., Any] = names["call"]
    return result


USER = function("user.py", "return go_on()")
RECORDER = function(str(PACKAGE / "recording" / "hot" / "dispatch.py"), "return go_on()")
SIMULATOR = function(str(PACKAGE / "simulation" / "mode.py"), "return go_on()")
OPS = function("/somewhere/torch/_ops.py", "return go_on()")
TORCH = function("/somewhere/torch/functional.py", "return go_on()")
LOADER = function(str(PACKAGE / "trace" / "format.py"), "return go_on()")


def fail() -> None:
    raise ValueError("no")


def files_of(error: BaseException) -> list[str]:
    return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]


def shown(*calls: Callable[..., Any]) -> list[str]:
    """Return the files of the traceback of nested calls that end in an error, without our frames and this file's."""
    go_on: Callable[[], Any] = fail
    for call in reversed(calls):
        go_on = partial(call, go_on)
    with pytest.raises(ValueError, match="no") as raised:
        go_on()
    hide_our_frames(raised.value)
    return [name for name in files_of(raised.value) if name != Path(__file__).name]


def test_the_recorder_and_what_it_calls_directly_are_hidden() -> None:
    assert shown(USER, RECORDER, OPS) == ["user.py"]
    assert shown(USER, RECORDER, SIMULATOR, OPS, USER) == ["user.py", "user.py"]


def test_torch_under_the_users_own_line_stays() -> None:
    assert shown(USER, TORCH, RECORDER, OPS) == ["user.py", "functional.py"]
    assert shown(USER, OPS) == ["user.py", "_ops.py"]


def test_what_a_user_calls_by_name_stays() -> None:
    assert shown(USER, LOADER) == ["user.py", "format.py"]


def test_what_ran_the_program_is_hidden_with_all_above_it() -> None:
    runner = function(str(PACKAGE / "cli" / "run_program.py"), "return go_on()")
    with pytest.raises(ValueError, match="no") as raised:
        LOADER(partial(runner, partial(TORCH, partial(USER, fail))))
    hide_our_frames(raised.value, below=str(PACKAGE / "cli" / "run_program.py"))
    assert files_of(raised.value) == ["functional.py", "user.py", Path(__file__).name]


def test_a_traceback_without_us_is_not_touched() -> None:
    with pytest.raises(ValueError, match="no") as raised:
        USER(fail)
    before = raised.value.__traceback__
    hide_our_frames(raised.value)
    assert raised.value.__traceback__ is before


def test_causes_contexts_and_members_of_groups_are_cleaned_too() -> None:
    def failed() -> ValueError:
        with pytest.raises(ValueError, match="no") as raised:
            USER(partial(RECORDER, fail))
        return raised.value

    cause, context, member = failed(), failed(), failed()
    error = ExceptionGroup("all", [member])
    error.__cause__, error.__context__ = cause, context
    cause.__context__ = error  # a ring, as Python makes them
    hide_our_frames(error)
    assert ["dispatch.py" in files_of(each) for each in (cause, context, member)] == [False] * 3
