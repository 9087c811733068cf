"""README names what a reader can meet: every rule, every cause, every notebook, and pictures that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from devtrace.diagnosis.slugs import Arrival

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SLUG = re.compile(r"[a-z]+(-[a-z]+)+")


def slugs() -> set[str]:
    """What the rules call things: rules and causes, less the words for how a tensor came to be."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "devtrace" / "diagnosis").rglob("*.py")]
    values = {node.value for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    return {value for value in values if isinstance(value, str) and SLUG.fullmatch(value)} - set(get_args(Arrival))


def test_the_rules_have_names() -> None:
    assert {"device-mismatch", "cpu-compute", "not-registered", "wrong-device"} <= slugs()


@pytest.mark.parametrize("slug", sorted({*slugs(), "unknown"}))
def test_readme_says_what_each_rule_and_cause_means(slug: str) -> None:
    assert re.search(rf"^\| `{slug}` \| \S.* \|$", TEXT, re.M)


def test_readme_points_at_every_notebook_and_at_nothing_that_is_not_there() -> None:
    linked = set(re.findall(r"\((notebooks/[^)]+\.ipynb)\)", TEXT))
    assert linked == {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_readme_shows_pictures_of_a_modest_size() -> None:
    shown = set(re.findall(r'(?:src|srcset)="([^"]+)"', TEXT))
    assert len(shown) == 2
    assert all((ROOT / name).stat().st_size < 150_000 for name in shown)
