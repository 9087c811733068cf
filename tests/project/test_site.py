"""The site: its pages are all in its menu, and a link that leads to nothing is found."""

from __future__ import annotations

import re
from pathlib import Path

import make_site

import needs
from documents import PAGES
from folders import ROOT

yaml = needs.imported("yaml")


def test_every_page_of_the_docs_is_in_the_menu_and_nothing_comes_from_outside() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = {name for entry in config["nav"] for name in entry.values()}
    assert listed == {"index.md", "notebooks.md", *PAGES, *make_site.OF_THE_REPOSITORY}
    assert {"search", "offline"} <= set(config["plugins"])
    assert config["theme"]["font"] is False


def test_a_link_that_leads_to_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#there">b</a><a href="#top">up</a>')
    (tmp_path / "b.html").write_text(
        '<p id="there"></p><a href="c.html">c</a><a href="a.html#no">a</a><img src="x.png">'
    )
    assert sorted(make_site.dead_links(tmp_path)) == ["b.html: a.html#no", "b.html: c.html", "b.html: x.png"]


def test_a_page_from_the_top_of_the_repository_links_within_the_site() -> None:
    text = make_site._within_the_site("[a](docs/limits.md#versions) [b](notebooks/00-x.ipynb) [c](src/devtrace/a.py)")
    assert not re.search(r"docs/|ipynb|src/", text)
    assert "](notebooks/00-x.html)" in text
