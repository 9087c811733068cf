"""Patches and modes of ours come and go among those of others."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

import devtrace
from devtrace.runtime.mode_stack import at_the_bottom, on_top, without
from devtrace.runtime.patches import Patches, SharedInstallation
from devtrace.runtime.watching import BIRTHS, MODULES, missed
from warm import LIMIT


class Base:
    inherited = 1


class Owner(Base):
    own = 1


@pytest.mark.parametrize("always_restore", [False, True])
def test_patches_are_undone_newest_first(always_restore: bool) -> None:
    patches, table, before = Patches(always_restore=always_restore), {"old": 1}, dict(vars(Owner))
    for value in (2, 3):
        patches.set(Owner, "own", value)
        patches.set(Owner, "inherited", value)
        patches.set_item(table, "old", value)
        patches.set_item(table, "new", value)
    patches.undo()
    assert (dict(vars(Owner)), table) == (before, {"old": 1})


@pytest.mark.parametrize(("always_restore", "left"), [(False, 3), (True, 1)])
def test_a_name_that_somebody_else_has_patched_over_is_left_unless_it_must_go(
    always_restore: bool, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    patches, table = Patches(always_restore=always_restore), {"key": 1}
    patches.set(Owner, "own", 2)
    patches.set_item(table, "key", 2)
    monkeypatch.setattr(Owner, "own", 3)
    table["key"] = 3
    patches.undo()
    assert (Owner.own, table) == (left, {"key": left})
    monkeypatch.undo()
    Owner.own = 1


def test_an_installation_lasts_from_its_first_user_to_its_last() -> None:
    seen: list[str] = []

    def install(undo: ExitStack) -> None:
        seen.append("in")
        undo.callback(seen.append, "out")

    installation = SharedInstallation(install)
    for _ in range(2):
        installation.begin()
        installation.begin()
        installation.end()
        assert seen[-1] == "in"
        installation.end()
    assert seen == ["in", "out"] * 2


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def new_mode() -> Mode:
    return Mode()  # type: ignore[no-untyped-call]


def stack() -> list[object]:
    return [torch._C._get_dispatch_stack_at(at) for at in range(torch._C._len_torch_dispatch_stack())]


def test_a_mode_goes_to_the_top_or_the_bottom_and_comes_out_from_wherever_it_lies() -> None:
    theirs, top, bottom, later = (new_mode() for _ in range(4))
    with theirs:
        with at_the_bottom(bottom), on_top(top):
            _push_mode(later)
            assert stack() == [bottom, theirs, top, later]
        assert stack() == [theirs, later]
        _pop_mode()
    assert stack() == []


def test_a_mode_steps_aside_and_returns_below_those_that_lay_above_it() -> None:
    below, ours, above = (new_mode() for _ in range(3))
    with below, on_top(ours), above:
        with without(ours):
            assert stack() == [below, above]
        assert stack() == [below, ours, above]
    with without(ours):  # on no stack
        assert stack() == []
    assert stack() == []


def test_what_could_not_be_watched_is_counted_and_reported_once() -> None:
    for fault in (KeyError("first"), KeyError("second"), TypeError("no weak reference")):
        with BIRTHS:
            raise fault
    assert missed() == ["devtrace could not watch where tensors were made (2 times; KeyError: 'first')"]
    assert missed() == []


def test_an_interrupt_passes_through_what_is_watched() -> None:
    with pytest.raises(KeyboardInterrupt), BIRTHS:
        raise KeyboardInterrupt
    assert missed() == []


def test_a_report_names_what_could_not_be_watched() -> None:
    with MODULES:
        raise ImportError("a torch that has changed")
    with devtrace.record() as recording:
        torch.ones(1)
    note = "devtrace could not watch modules (1 time; ImportError: a torch that has changed)"
    assert recording.report.notes == (note,)


def test_a_bare_folder_in_the_path_loses_no_recording() -> None:
    program = """
import importlib.metadata as metadata
def missing(name):
    raise metadata.PackageNotFoundError(name)
import torch
found, metadata.version = metadata.version, lambda name: missing(name) if name == "devtrace" else found(name)
import devtrace
with devtrace.record("cuda:1") as recording:
    torch.ones(2, device="cuda")
assert recording.report.all_clear, recording.report
print(recording.trace.producer, devtrace.__version__, recording.report.notes)
"""
    got = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (got.stdout, got.stderr) == ("devtrace 0 0 ()\n", "")
