"""README names what a reader can meet: every rule, every cause, every notebook, and pictures that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import readme_tables

import readme_example
from devtrace.diagnosis.slugs import CauseSlug, RuleSlug

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_shows_the_report_of_its_program() -> None:
    finding, _, _ = readme_example.made().text.partition("\n\n")
    assert readme_example.shown() == finding


def test_the_tables_of_rules_and_causes_are_those_of_the_code() -> None:
    assert readme_tables.with_tables(TEXT) == TEXT, "run: python tools/readme_tables.py"


@pytest.mark.parametrize("slug", [*get_args(RuleSlug), *get_args(CauseSlug)])
def test_readme_says_what_each_rule_and_cause_means(slug: str) -> None:
    assert slug == "expectation" or re.search(rf"^\| `{slug}` \| \S.* \|$", TEXT, re.M)


def test_readme_points_at_every_notebook_and_at_nothing_that_is_not_there() -> None:
    linked = set(re.findall(r"\((notebooks/[^)]+\.ipynb)\)", TEXT))
    assert linked == {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_readme_shows_pictures_of_a_modest_size() -> None:
    shown = set(re.findall(r'(?:src|srcset)="([^"]+)"', TEXT))
    assert len(shown) == 2
    assert all((ROOT / name).stat().st_size < 150_000 for name in shown)
