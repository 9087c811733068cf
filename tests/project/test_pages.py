"""README, the tutorial, how-to pages, those on simulations and the API: their code runs, and puts out what they show.

A block with a title is a file. Blocks of Python without one are the cells of one notebook, and lines of `sh` run after
them. The next `text` is what a block puts out, `...` what is left out of it. Where there is none, it may not fail.
"""

from __future__ import annotations

import os
import re
import runpy
from itertools import pairwise
from pathlib import Path

import pytest

import devtrace
from documents import PAGES, README
from pages import BLOCK, run_command
from warm import Warm

RUN = [name for name in PAGES if name.startswith("how-to/") or name.endswith(("tutorial.md", "simulation.md"))]
TEXTS = {"README.md": README, **{name: PAGES[name] for name in RUN}}


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", TEXTS)
def test_the_code_of_a_page_runs_and_puts_out_what_the_page_shows(name: str, warm: Warm, tmp_path: Path) -> None:
    page, language = TEXTS[name], "zh" if name.startswith("zh/") else "en"
    for _, title, code in BLOCK.findall(page):
        if title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(code, encoding="utf-8")
    cells = iter(warm.call("pages", "run_cells", page, str(tmp_path), language))
    blocks = [(kind, code) for kind, title, code in BLOCK.findall(page) if not title]
    for (kind, code), (below, shown) in pairwise([*blocks, ("", "")]):
        commands = code.splitlines() if kind == "sh" else []
        ran = [run_command(line, tmp_path, warm, language) for line in commands]
        ran += [next(cells)] if kind == "python" else []
        text = "\n".join(put_out for _, put_out in ran)
        pieces = shown.split("...\n") if below == "text" and ran else []
        assert [piece for piece in pieces if piece.strip() not in text] == [], text
        assert pieces or not any(failed for failed, _ in ran), text


PAGE = PAGES["api.md"]
PARTS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
OF_IPYTHON = {"__version__", "load_ipython_extension", "unload_ipython_extension"}


def test_each_public_name_has_a_part_with_an_example() -> None:
    assert set(PARTS) == set(devtrace.__all__) - OF_IPYTHON
    assert [
        name
        for name, part in PARTS.items()
        if "```python\n" not in part
        or "```text\ndevtrace." not in part.replace("```text\nclass devtrace.", "```text\ndevtrace.")
    ] == []


@pytest.mark.parametrize("name", PARTS)
def test_an_example_of_the_reference_runs(name: str, tmp_path: Path) -> None:
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        for code in re.findall(r"^```python\n(.*?)^```", PARTS[name], re.M | re.S):
            Path("example.py").write_text(code, encoding="utf-8")
            runpy.run_path(str(tmp_path / "example.py"))
    finally:
        os.chdir(here)
