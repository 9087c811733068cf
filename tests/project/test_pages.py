"""README, the tutorial, the how-to pages and the one on simulations: their code runs, and puts out what they show.

A block with a title is a file. Blocks of Python without one are the cells of one notebook, and lines of `sh` run after
them. The next `text` is what a block puts out, `...` what is left out of it. Where there is none, it may not fail.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

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
