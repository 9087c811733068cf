"""What each test takes is kept, the longest file begins first, and what takes too long fails `make test`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import durations
from warm import SPENT, Warm

pytest_plugins = ["pytester"]

BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


@pytest.fixture(autouse=True)
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "FILE", tmp_path / "build" / "durations.json")
    monkeypatch.setattr(durations, "ROOT", tmp_path)


def test_what_other_tests_took_is_kept_and_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).touch()
    durations.keep({"a.py::one": 1.0, "b.py::one": 2.0})
    durations.keep({"a.py::two": 0.123})
    assert durations.read() == {"a.py::one": 1.0, "a.py::two": 0.12, "b.py::one": 2.0}
    (tmp_path / "b.py").unlink()
    durations.keep({"a.py::one": 3.0})
    assert durations.read() == {"a.py::one": 3.0, "a.py::two": 0.12}
    assert durations.of_files(durations.read()) == {"a.py": 3.12}


@pytest.mark.parametrize(
    ("took", "code"),
    [
        ({"a.py::one": 19.9}, 0),
        ({"a.py::one": 20.1}, 1),
        ({f"a.py::{number}": 10.0 for number in range(10)}, 1),
        ({f"{number}.py::a": 10.0 for number in range(10)}, 0),
        ({"a.py::(set-up)": 30.0, "a.py::one": 1.0}, 0),
        ({"a.py::(set-up)": 85.0, "a.py::one": 6.0}, 1),
    ],
)
def test_a_long_test_and_a_long_file_fail(
    took: dict[str, float], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for test in took:
        (tmp_path / durations.file_of(test)).touch()
    durations.keep(took)
    assert durations.main() == code
    assert (" > " in capsys.readouterr().out) == bool(code)


@pytest.mark.parametrize(("files", "order"), [((), "ba"), (("test_a.py", "test_b.py"), "ab")])
def test_the_longest_file_begins_where_none_is_named_and_its_tests_stay_in_order(
    pytester: pytest.Pytester, tmp_path: Path, files: tuple[str, ...], order: str
) -> None:
    two = "def test_1(): pass\ndef test_2(): pass"
    pytester.makepyfile(test_a=two, test_b=two)
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).touch()
    durations.keep({"test_b.py::test_2": 2.0, "test_a.py::test_1": 1.0})
    items = (
        pytester.inline_run(*files, plugins=[durations.Durations(pytester.parseconfig())])
        .getcalls("pytest_collection_modifyitems")[0]
        .items
    )
    assert [item.nodeid for item in items] == [f"test_{file}.py::test_{number}" for file in order for number in (1, 2)]


def test_what_fixtures_take_is_the_files(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        test_a="import pytest\nfrom warm import SPENT\n\n@pytest.fixture(scope='module')\n"
        "def slow():\n    SPENT.seconds += 0.3\n    yield\n    SPENT.seconds += 0.1\n\n"
        "def test_1(slow): SPENT.seconds += 0.02\ndef test_2(slow): pass"
    )
    (tmp_path / "test_a.py").touch()
    with monkeypatch.context() as own:
        own.setattr(SPENT, "seconds", 0.0)
        own.setattr(durations, "spent", lambda: SPENT.seconds)  # a clock that these tests alone move
        pytester.inline_run(plugins=[durations.Durations(pytester.parseconfig())])
    assert durations.read() == {"test_a.py::(set-up)": 0.4, "test_a.py::test_1": 0.02, "test_a.py::test_2": 0.0}


def test_the_time_of_children_and_of_forks_counts(tmp_path: Path) -> None:
    before = durations.spent()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert durations.spent() - before >= 0.3
    with Warm() as warm:
        before, seconds = durations.spent(), SPENT.seconds
        (tmp_path / "burn.py").write_text(BURN)
        warm.python(tmp_path, "burn.py", "cuda:1")
        assert durations.spent() - before >= SPENT.seconds - seconds >= 0.3
