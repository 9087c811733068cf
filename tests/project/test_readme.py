"""README and docs name what a reader can meet: rules, causes, notebooks, and pictures that are there."""

from __future__ import annotations

import re
from typing import get_args

import make_docs
import pytest

import readme_example
from devtrace.diagnosis.slugs import CauseSlug, RuleSlug
from documents import PAGES, README
from folders import ROOT


def test_the_example_shows_the_report_of_its_program() -> None:
    finding, _, _ = readme_example.made().text.partition("\n\n")
    assert readme_example.shown() == finding


@pytest.mark.parametrize("page", PAGES)
def test_tables_and_examples_are_those_of_the_code(page: str) -> None:
    assert make_docs.made_anew(PAGES[page]) == PAGES[page], "run: make docs"


@pytest.mark.parametrize("slug", [*get_args(RuleSlug), *get_args(CauseSlug)])
def test_the_docs_explain_what_each_rule_and_cause_means(slug: str) -> None:
    assert slug == "expectation" or re.search(rf"^\| `{slug}` \| \S.* \|$", PAGES["findings.md"], re.M)


def test_readme_is_read_in_a_few_minutes() -> None:
    assert len(README.encode()) <= 8_000


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_a_page_links_to_nothing_that_is_not_there(page: str) -> None:
    text, folder = (README, ROOT) if page == "README.md" else (PAGES[page], ROOT / "docs")
    linked = re.findall(r"\]\(([\w./-]+\.(?:md|ipynb|png))\)", text)
    assert [name for name in linked if not (folder / name).exists()] == []


def test_readme_points_at_every_notebook_and_at_nothing_that_is_not_there() -> None:
    linked = set(re.findall(r"\((notebooks/[^)]+\.ipynb)\)", README))
    assert linked == {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_readme_shows_pictures_of_a_modest_size() -> None:
    shown = set(re.findall(r'(?:src|srcset)="([^"]+)"', README))
    assert len(shown) == 2
    assert all((ROOT / name).stat().st_size < 150_000 for name in shown)
