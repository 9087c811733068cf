"""README and docs name what a reader can meet: rules, causes, notebooks, and pictures that are there."""

from __future__ import annotations

import json
import re
from typing import get_args

import make_docs
import pytest

import report_example
from devtrace.diagnosis.slugs import CauseSlug, RuleSlug
from documents import PAGES, README
from folders import ROOT


def test_the_example_shows_the_report_of_its_program() -> None:
    finding, _, _ = report_example.made().text.partition("\n\n")
    assert report_example.shown() == finding


@pytest.mark.parametrize("page", PAGES)
def test_tables_and_examples_are_those_of_the_code(page: str) -> None:
    assert make_docs.made_anew(PAGES[page]) == PAGES[page], "run: make docs"


def test_the_pages_that_explain_prints_are_those_of_the_code() -> None:
    assert json.loads(make_docs.PRINTED.read_text(encoding="utf-8")) == make_docs.printed(), "run: make docs"


@pytest.mark.parametrize("slug", [*get_args(RuleSlug), *get_args(CauseSlug)])
def test_the_docs_explain_what_each_rule_and_cause_means_and_show_one(slug: str) -> None:
    page = "causes.md" if slug in get_args(CauseSlug) else "rules.md"
    entry = rf"^\| \[`{slug}`\]\(#{slug}\) \| \S.* \|$(?s:.*?)^## {slug}\n\n\S(?s:.*?)^```python\n(?s:.*?)^```text\n"
    for text in (PAGES[page], PAGES[f"zh/{page}"]):
        assert slug == "expectation" or re.search(entry, text, re.M)


def test_readme_is_read_in_a_few_minutes_and_an_agent_can_be_given_its_page_whole() -> None:
    assert len(README.encode()) <= 8_000
    assert len(PAGES["how-to/agents.md"].encode()) <= 4_096


def anchors(text: str) -> set[str]:
    """Return what a link into a page may name: its headings, as GitHub and the site spell them."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_a_page_links_to_nothing_that_is_not_there(page: str) -> None:
    file = ROOT / ("" if page == "README.md" else "docs") / page
    for name, anchor in re.findall(r"\]\(([\w./-]+\.(?:md|ipynb|png))?(?:#([\w-]+))?\)", file.read_text("utf-8")):
        there = file.parent / name if name else file
        assert there.exists(), name
        assert not anchor or anchor in anchors(there.read_text(encoding="utf-8")), f"{name}#{anchor}"


def test_readme_points_at_every_notebook_and_at_nothing_that_is_not_there() -> None:
    linked = set(re.findall(r"\((notebooks/[^)]+\.ipynb)\)", README))
    assert linked == {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_readme_shows_pictures_of_a_modest_size() -> None:
    shown = set(re.findall(r'(?:src|srcset)="([^"]+)"', README))
    assert len(shown) == 3
    assert all((ROOT / name).stat().st_size < 150_000 for name in shown)
