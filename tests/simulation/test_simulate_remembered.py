"""What packages remember of devices: answers from before a simulation, and from within it, are wrong after."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import devtrace
from devtrace.api import environment

PACKAGE = """
import functools
import torch

class Backend:
    def __init__(self, kind):
        self.kind = kind

    @staticmethod
    @functools.lru_cache
    def detected():
        return "cuda" if torch.accelerator.is_available() else "cpu"

    @classmethod
    @functools.cache
    def many(cls):
        return torch.cuda.device_count()

@functools.cache
def answer(*names, strict=False):
    return {"device": torch.device("cuda" if torch.cuda.is_available() else "cpu"), "names": list(names)}

def asked():
    return torch.cuda.is_available()

@functools.lru_cache(maxsize=4)
def indirectly(name):
    return name if asked() else "none"

@functools.cache
def backend():
    return Backend("cuda" if torch.cuda.is_available() else "cpu")

@functools.cache
def unrelated(word):
    calls.append(word)
    return word

calls = []
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package that was imported, and asked, before any simulation."""
    (tmp_path / "remembering.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    import remembering  # type: ignore[import-not-found]

    module: ModuleType = remembering
    yield module
    del sys.modules["remembering"]


def answers(package: ModuleType) -> tuple[str, ...]:
    return (
        package.Backend.detected(),
        str(package.Backend.many()),
        str(package.answer("a", strict=True)["device"]),
        package.indirectly("gpu"),
    )


def test_cached_answers_are_asked_again_when_a_simulation_begins_and_when_it_ends(package: ModuleType) -> None:
    assert answers(package) == ("cpu", "0", "cpu", "none")
    package.unrelated("once")
    with devtrace.simulate("cuda:2"):
        assert answers(package) == ("cuda", "2", "cuda", "gpu")
        package.unrelated("once")
    assert answers(package) == ("cpu", "0", "cpu", "none")
    assert package.calls == ["once"]  # a cache that has nothing to do with devices is left


def test_an_answer_that_is_an_object_of_its_own_is_kept_and_named_in_the_report_and_by_check(
    package: ModuleType,
) -> None:
    before = package.backend()
    with devtrace.record(simulate="cuda:1") as recording:
        assert package.backend() is before
        torch.ones(2, device="cuda")
        assert "remembering.backend keeps an answer from before" in environment.describe()
    (note,) = recording.report.notes
    assert note.startswith("remembering.backend keeps an answer from before the simulation")
    assert "remembering" not in environment.describe()


def test_no_code_of_a_lazy_module_runs(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "lazily", Lazy("lazily"))
    with devtrace.simulate("cuda:1"):
        pass
