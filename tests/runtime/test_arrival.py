"""Waiting for a package: called once, in the midst of the import statement, and nothing of it stays."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtrace.runtime.import_hook import ImportWatcher


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package that is not imported yet, and that imports a part of itself."""
    name = "devtrace_awaited"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("from . import part\nready = True\nspec = __spec__\n")
    (tmp_path / name / "part.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield name
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


@pytest.fixture
def watcher(package: str) -> Iterator[ImportWatcher]:
    watcher = ImportWatcher(package)
    yield watcher
    if watcher in sys.meta_path:
        sys.meta_path.remove(watcher)


def test_it_is_called_when_the_package_is_whole(watcher: ImportWatcher, package: str) -> None:
    seen: list[bool] = []
    watcher.call_when_imported(lambda: seen.append(sys.modules[package].ready))
    importlib.import_module(f"{package}.part")
    assert seen == [True]


def test_whoever_waits_first_is_called_first(watcher: ImportWatcher, package: str) -> None:
    called: list[str] = []
    watcher.call_when_imported(lambda: called.append("first"))
    watcher.call_when_imported(lambda: called.append("second"))
    importlib.import_module(package)
    assert called == ["first", "second"]


def test_it_is_called_at_once_when_the_package_is_there(watcher: ImportWatcher, package: str) -> None:
    importlib.import_module(package)
    called: list[bool] = []
    watcher.call_when_imported(lambda: called.append(True))
    assert called == [True]
    assert watcher not in sys.meta_path


def test_nothing_stays_behind_in_the_import_system_or_the_package(watcher: ImportWatcher, package: str) -> None:
    before = list(sys.meta_path)
    watcher.call_when_imported(lambda: None)
    module = importlib.import_module(package)
    assert sys.meta_path == before
    assert type(module.__loader__) is type(importlib.import_module("json").__loader__)
    assert module.__spec__ is module.spec
    assert module.__loader__ is module.__spec__.loader
    assert "exec_module" not in vars(module.__loader__)


def test_nobody_is_called_who_no_longer_waits(watcher: ImportWatcher, package: str) -> None:
    called: list[bool] = []

    def call() -> None:
        called.append(True)

    watcher.call_when_imported(call)
    watcher.cancel(call)
    assert watcher not in sys.meta_path
    importlib.import_module(package)
    assert called == []


def test_looking_for_the_package_without_importing_it_calls_nobody(watcher: ImportWatcher, package: str) -> None:
    called: list[bool] = []
    watcher.call_when_imported(lambda: called.append(True))
    assert importlib.util.find_spec(package) is not None
    assert called == []
    importlib.import_module(package)
    assert called == [True]


def test_an_import_that_fails_is_waited_for_again(watcher: ImportWatcher, package: str, tmp_path: Path) -> None:
    whole = (tmp_path / package / "__init__.py").read_text()
    (tmp_path / package / "__init__.py").write_text("1 / 0\n")
    called: list[bool] = []
    watcher.call_when_imported(lambda: called.append(True))
    with pytest.raises(ZeroDivisionError):
        importlib.import_module(package)
    (tmp_path / package / "__init__.py").write_text(whole + "# longer, so that no cache is taken\n")
    importlib.import_module(package)
    assert called == [True]


def test_a_package_that_does_not_exist_is_an_import_error_as_ever() -> None:
    watcher = ImportWatcher("devtrace_there_is_no_such_package")
    call = list[None]().clear
    watcher.call_when_imported(call)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(watcher.package)
    watcher.cancel(call)


def test_two_that_wait_for_one_package_are_both_called(watcher: ImportWatcher, package: str) -> None:
    other, called = ImportWatcher(package), []
    watcher.call_when_imported(lambda: called.append("first"))
    other.call_when_imported(lambda: called.append("second"))
    importlib.import_module(package)
    assert sorted(called) == ["first", "second"]
    assert not any(isinstance(finder, ImportWatcher) and finder.package == package for finder in sys.meta_path)
