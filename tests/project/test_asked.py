"""`make test` asks the folders of tests under which something has changed."""

from __future__ import annotations

import asked
import pytest


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
