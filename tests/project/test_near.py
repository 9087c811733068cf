"""Which tests a change asks: those that it can reach (`make near`), and the folders that stand on it (`make test`)."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import asked
import near
import pytest
from near_record import MAP, ROOT, Ran, decode, encode, named, ran

FILES = {
    "src/devtrace/rules/waits.py": """\
import re

OFTEN = 3

def waits(queries):
    return [wait for wait in queries if wait > OFTEN]


class Wait:
    @property
    def seconds(self):
        def inner():
            return 1
        return inner()

    def text(self):
        return sentence("wait.text")
""",
    "src/devtrace/rules/fresh.py": "def fresh():\n    return 1\n",
    "src/devtrace/words/en.json": '{\n"wait.text": "It waited.",\n"other": "Other."\n}\n',
    "tests/rules/test_waits.py": "from devtrace.rules.waits import waits\n",
    "tests/rules/test_fresh.py": "from devtrace.rules import (\n    fresh,\n)\n",
    "tests/rules/here/test_texts.py": "import harmless\n",
    "tests/words/test_words.py": "",
    "tests/harness/harmless.py": "import warm\n",
    "tests/harness/warm.py": "",
    "tests/corpus/bug.py": "",
    "tests/project/test_corpus.py": 'FOLDER = "corpus"\nPAGE = "limits.md"\n',
}
WAITS = "src/devtrace/rules/waits.py"
TESTS = {
    "tests/rules/test_waits.py": Ran(4, {WAITS: {"waits", "Wait.seconds"}}),
    "tests/rules/test_texts.py": Ran(2, {WAITS: {"Wait.text", "Wait.seconds"}}),
    "tests/rules/test_gone.py": Ran(1, {WAITS: {"Wait.seconds"}}),
}


@pytest.fixture
def tests(tmp_path: Path) -> near.Near:
    for name, text in (FILES | {str(MAP): json.dumps(encode(TESTS))}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return near.Near(tmp_path)


A, B, C, D, E = (
    "tests/rules/test_waits.py",
    "tests/rules/here/test_texts.py",
    "tests/rules/test_fresh.py",
    "tests/words/test_words.py",
    "tests/project/test_corpus.py",
)


@pytest.mark.parametrize(
    ("path", "lines", "reached"),
    [
        (WAITS, {6}, {A}),  # a function
        (WAITS, {10}, {A, B}),  # a decorator; what ran has moved, or is gone
        (WAITS, {1, 17}, {B}),  # imports reach nothing
        (WAITS, {3, 17}, {A, B}),  # a constant: all of the file
        (WAITS, None, {A, B}),
        ("src/devtrace/costs/waits.py", None, {A, B}),  # the file has moved
        ("src/devtrace/rules/fresh.py", {1}, {A, B, C}),  # not recorded: who imports it, and the folder
        ("src/devtrace/rules/new/fresher.py", {1}, {A, B, C}),  # the folder alone
        ("src/devtrace/words/en.json", {2}, {B}),  # a sentence: who runs what names its key
        ("src/devtrace/words/en.json", {3}, {D}),
        ("tests/harness/warm.py", None, {B}),  # by another module of the harness
        ("tests/corpus/never-moved/a/bug.py", None, {E}),
        ("docs/limits.md", {1}, {E}),
        (D, {1}, {D}),
        ("src/devtrace/rules/gone.py", {0}, {A, B, C}),
        ("setup.cfg", None, set()),
    ],
)
def test_what_a_change_reaches(tests: near.Near, path: str, lines: set[int] | None, reached: set[str]) -> None:
    if lines and lines != {0} and not (tests.root / path).exists():
        (tests.root / path).parent.mkdir(parents=True, exist_ok=True)
        (tests.root / path).write_text("def new():\n    pass\n")
    assert {*tests.reached(path, lines)} == reached


def test_what_few_run_comes_first_and_a_limit_leaves_out_the_rest(tests: near.Near) -> None:
    weights = Counter({A: 1_000, B: 100, C: 10})
    assert near.nearest(tests, weights, 5) == ([A], [B, C])
    assert near.nearest(tests, weights, 6) == ([A, B], [C])
    assert near.nearest(tests, weights, 6 + near.UNKNOWN) == ([A, B, C], [])
    assert near.nearest(tests, weights, 1) == ([A], [B, C])
    assert near.nearest(tests, weights | Counter({D: near.CHANGED}), 600)[0][0] == D


def test_what_was_not_run_is_named_with_the_reason() -> None:
    beyond = [f"not run: {A}, beyond 5 s", f"not run: {B}, beyond 5 s"]
    assert [*near.not_run([A, B], ["docs/limits.md"], 5)] == beyond
    apart = ["not run: `make notebooks`", "not run: `make e2e`", "not run: `make breadth`"]
    assert [*near.not_run([A, B], [WAITS], 5)] == beyond + apart
    assert [*near.not_run([], ["labextension/src/view/lines.ts"], 5)] == apart[1:2]


def test_lines_have_functions_and_what_ran_is_more_than_the_import() -> None:
    text = FILES[WAITS]
    assert named(text, {2, 5, 12, 15}) == {"waits", "Wait.seconds"}
    assert named(text, {1, 3}) == {""}
    assert ran(text, {3, 5, 11, 16, 17}) == {"Wait.text"}


def test_a_record_is_read_as_it_was_written() -> None:
    assert decode(json.loads(json.dumps(encode(TESTS)))) == TESTS
    assert [*encode(TESTS)["seconds"]] == sorted(TESTS)


def test_changed_lines_and_new_files_are_those_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "ROOT", tmp_path)
    as_anybody = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("1\n2\n3\n")
    for command in (["init", "-q"], ["add", "."], [*as_anybody, "commit", "-qm", "All"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "a.py").write_text("1\nx\ny\n3\n")
    (tmp_path / "b.py").write_text("1\n2\n")
    (tmp_path / "new.py").write_text("1\n")
    assert dict(near.changes("HEAD", [])) == {"a.py": {2, 3}, "b.py": {2}, "new.py": None}
    assert dict(near.changes("HEAD", ["a.py", "c.py"])) == {"a.py": {2, 3}, "c.py": None}


def test_every_test_file_is_reached_by_a_change_of_what_is_none() -> None:
    here = near.Near(ROOT)
    paths = [*(ROOT / "src").glob("devtrace/*/__init__.py"), *(ROOT / "tools").glob("*.py"), *ROOT.glob("*.*")]
    changed = [path.relative_to(ROOT).as_posix() for path in paths]
    changed += ["docs/limits.md", "notebooks/a.ipynb", "Makefile", ".ci/run", "tests/bench/ratios.json"]
    changed += ["tests/project/lines.json", "tests/harness/trees.py", "tests/harness/warm.py"]
    reached = {test for path in changed for test in here.reached(path, None)} | {*here.tests}
    assert {path for path in here.texts if near.is_test(path)} - reached == set()


@pytest.mark.parametrize(
    ("package", "reached", "spared"),
    [
        ("diagnosis/ending.py", "report notebook explaining project", "simulation recording source runtime e2e"),
        (
            "diagnosis/rules",
            "diagnosis explaining dtypes",
            "report costs jobs notebook cli fixing project notebooks recording",
        ),
        ("diagnosis/evidence", "diagnosis report costs explaining jobs", "notebook cli fixing project recording"),
        ("memory/rules", "memory", "diagnosis explaining jobs cli"),
        ("simulation/simulation.py", "simulation project", "recording diagnosis report costs"),
        ("words/errors.py", "simulation runtime trace diagnosis cli notebook", "source"),
        ("notebook/magic.py", "notebook e2e project wheel", "report recording diagnosis"),
    ],
)
def test_a_change_reaches_the_tests_of_what_stands_above_it(package: str, reached: str, spared: str) -> None:
    place = f"{asked.SOURCES}/{package}"
    names = {*(folder.name for folder in asked.OF_TESTS), "notebooks", "wheel"}
    stand_on_it = {name for name in names if any(f"{place}/".startswith(f"{each}/") for each in asked.under(name))}
    assert set(reached.split()) <= stand_on_it
    assert not set(spared.split()) & stand_on_it


def test_what_has_passed_is_asked_again_when_its_folder_or_what_it_stands_on_differs() -> None:
    before = asked.state(["report", "simulation"])
    asked.digest.cache_clear()
    assert asked.state(["report", "simulation"]) == before
    assert before["report"] != before["simulation"]


def test_every_folder_of_tests_is_asked_by_one_target() -> None:
    names = [*asked.folders_of("unit"), *asked.folders_of("e2e")]
    assert sorted(names) == sorted(folder.name for folder in asked.OF_TESTS)
    assert {"tests/corpus", "tests/harness", "tests/golden"} <= set(asked.COMMON)
