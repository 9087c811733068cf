"""The site: its menu has all pages, nothing of it comes from outside, and a link that leads to nothing is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import make_site
import site_notebooks

import needs
from documents import PAGES
from folders import ROOT

yaml = needs.imported("yaml")


def test_every_page_of_the_docs_is_in_the_menu_and_nothing_comes_from_outside() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    books = {f"notebooks/{path.with_suffix('.md').as_posix()}" for path in site_notebooks.notebooks()}
    written = {"index.md", "gallery.md", "notebooks/index.md", *books}
    assert set(listed(config["nav"])) == {*written, *PAGES, *make_site.OF_THE_REPOSITORY}
    assert {"search", "offline"} <= set(config["plugins"])
    assert config["theme"]["font"] is False
    assert all((make_site.ASSETS / Path(name).name).exists() for name in config["extra"]["polyfills"])


def listed(entries: list[Any]) -> Iterator[str]:
    """Yield the pages of a menu, those within another entry too."""
    for entry in entries:
        for page in entry.values() if isinstance(entry, dict) else [entry]:
            yield from listed(page) if isinstance(page, list) else [page]


def test_a_notebook_is_a_page_with_its_code_and_live_reports() -> None:
    book = {
        "cells": [
            {"cell_type": "markdown", "source": ["# 1 \u00b7 A\n", "[next](02-b.ipynb)"]},
            {
                "cell_type": "code",
                "source": "print('```')",
                "execution_count": 4,
                "outputs": [
                    {"output_type": "stream", "text": "\x1b[31mred\x1b[0m ```\n"},
                    {"output_type": "display_data", "data": {site_notebooks.MIME_TYPE: {"a": "</script>"}}},
                ],
            },
        ]
    }
    prose, code, text, report = site_notebooks._cells(book)
    assert prose.endswith("[next](02-b.md)")
    assert code == "````python title=\"In [4]\"\nprint('```')\n````"
    assert text == "````text\nred ```\n````"
    assert report.count("</script>") == 1
    assert 'devtraceMount(document.currentScript.previousElementSibling,{"a": "\\u003c' in report


def test_a_link_that_leads_to_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#there">b</a><a href="#top">up</a>')
    (tmp_path / "b.html").write_text(
        '<p id="there"></p><a href="c.html">c</a><a href="a.html#no">a</a><img src="x.png">'
    )
    assert sorted(make_site.dead_links(tmp_path)) == ["b.html: a.html#no", "b.html: c.html", "b.html: x.png"]


def test_what_a_page_fetches_from_outside_is_found_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="https://a.org">a</a><img src="data:,x"><script src="https://a.org/b.js"></script>'
        '<link rel="stylesheet" href="//a.org/c.css">'
    )
    assert sorted(make_site.dead_links(tmp_path)) == [
        "a.html: //a.org/c.css comes from outside",
        "a.html: https://a.org/b.js comes from outside",
    ]


def test_a_page_from_the_top_of_the_repository_links_within_the_site() -> None:
    text = make_site._within_the_site("[a](docs/limits.md#versions) [b](notebooks/00-x.ipynb) [c](src/devtrace/a.py)")
    assert not re.search(r"docs/|ipynb|src/", text)
    assert "](notebooks/00-x.md)" in text
