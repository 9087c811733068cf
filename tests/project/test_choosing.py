"""Every test is run by exactly one target of the Makefile, and CI asks for all of them."""

from __future__ import annotations

import re

import pytest

from choosing import KINDS, mark_breadth
from folders import ROOT, TESTS

pytest_plugins = ["pytester"]

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
IN_MAKE_TEST = ("unit", "notebooks", "wheel", "e2e")
OF_BREADTH = ("breadth-e2e", "breadth-notebooks")
BESIDE = ("breadth", *OF_BREADTH, "e2e-vscode", "e2e-marimo", "real")
MARKS = """\
import pytest

@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", range(7))
def test_many(n): pass

@pytest.mark.parametrize("n", range(3))
def test_all(n): pass

@pytest.mark.breadth
def test_more(): pass

@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.another)])
def test_kinds(n): pass
"""


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)
    assert found is not None, target
    return found[1]


def expressions(*targets: str) -> set[str]:
    """Return what pytest is asked for by marks."""
    found = {each.strip('"') for target in targets for each in re.findall(r'-m ("[^"]+"|\w+)', recipe(target))}
    return found - {"pytest"}


def wants(expression: str, marks: set[str]) -> bool:
    return bool(eval(expression, {}, {mark: mark in marks for mark in (*KINDS, "breadth")}))


@pytest.mark.parametrize("breadth", [False, True])
@pytest.mark.parametrize("kind", ["", *sorted(KINDS)])
def test_a_test_of_any_marks_is_run_by_one_target(kind: str, breadth: bool) -> None:
    marks = {kind, *(["breadth"] * breadth)} - {""}
    (chosen,) = (each for each in expressions(*IN_MAKE_TEST, *BESIDE) if wants(each, marks))
    assert chosen in expressions(
        *(BESIDE if kind in ("foreign", "real") or (breadth and kind != "wheel") else IN_MAKE_TEST)
    )


def test_what_a_target_leaves_out_by_path_another_of_make_test_runs() -> None:
    ignoring = {"unit": "quick", "breadth": "breadth"}
    assert all("--ignore" not in recipe(target) for target in (*IN_MAKE_TEST, *BESIDE) if target not in ignoring)
    for target, other in ignoring.items():
        (left_out,) = re.findall(r"--ignore=,?\$\((\w+)\)", recipe(target))
        assert re.findall(rf" \$\({left_out}\)$", recipe(other), re.M)
    for whole, parts in (("test", (*IN_MAKE_TEST, "quick")), ("breadth", OF_BREADTH)):
        assert {*parts} <= {*re.split(r"\s+", recipe(whole))}


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("e2e", ("e2e", "breadth-e2e")), ("notebook", ("notebooks", "breadth-notebooks")), ("wheel", ("wheel",))],
)
def test_where_a_target_looks_for_its_tests_all_of_their_kind_are(kind: str, targets: tuple[str, ...]) -> None:
    marked = re.compile(rf"^(?:@|pytestmark = .*)pytest\.mark\.{kind}\b", re.M)
    files = {path for path in TESTS.rglob("test_*.py") if marked.search(path.read_text(encoding="utf-8"))}
    assert files
    for target in targets:
        (variable,) = re.findall(r"\$\((OF_\w+)\)$", recipe(target), re.M)
        (asked,) = re.findall(rf"^{variable} := (\S+)$", MAKEFILE, re.M)
        assert {path for path in files if not path.is_relative_to(ROOT / asked)} == set()


def test_front_ends_are_asked_for_by_every_file_that_has_such_tests() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "e2e").glob("test_*.py")}
    foreign = {path for path in found if "mark.foreign" in (ROOT / path).read_text(encoding="utf-8")}
    assert {*re.findall(r"tests/e2e/test_\w+\.py", recipe("e2e-vscode") + recipe("e2e-marimo"))} == foreign


def chosen(pytester: pytest.Pytester, text: str, *arguments: str) -> list[str]:
    pytester.makepyfile(test_a=text)
    pytester.makeconftest(
        "import pytest\nfrom choosing import mark_breadth\n\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items): mark_breadth(items)"
    )
    items = pytester.inline_run("--collect-only", *arguments).getcalls("pytest_collection_finish")[0].session.items
    return [item.name for item in items]


def test_of_many_cases_make_test_asks_one_in_n_and_breadth_the_others(pytester: pytest.Pytester) -> None:
    of_test = chosen(pytester, MARKS, "-m", "not breadth")
    assert of_test == [
        "test_many[0]",
        "test_many[3]",
        "test_many[6]",
        *(f"test_all[{n}]" for n in range(3)),
        "test_kinds[0]",
    ]
    assert chosen(pytester, MARKS, "-m", "breadth") == [
        *(f"test_many[{n}]" for n in (1, 2, 4, 5)),
        "test_more",
        "test_kinds[1]",
    ]


def test_a_case_that_is_asked_for_by_its_name_is_run(pytester: pytest.Pytester) -> None:
    assert chosen(pytester, MARKS, "test_a.py::test_many[1]", "-m", "not breadth") == ["test_many[1]"]


def test_a_test_for_two_targets_is_refused(pytester: pytest.Pytester) -> None:
    item = pytester.getitem("import pytest\n\n@pytest.mark.e2e\n@pytest.mark.real\ndef test_two(): pass", "test_two")
    with pytest.raises(pytest.UsageError, match=r"test_two is marked for more than one target: e2e, real"):
        mark_breadth([item])
