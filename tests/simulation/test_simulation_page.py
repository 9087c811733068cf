"""docs/simulation.md: each of its programs runs by itself, and prints what the page shows below it."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from documents import PAGES

PAGE = PAGES["simulation.md"]
SHOWN = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.M | re.S)


@pytest.mark.parametrize(("program", "output"), SHOWN)
def test_a_program_of_the_page_prints_what_the_page_shows(program: str, output: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, {})
    assert printed.getvalue() == output


def test_each_program_of_the_page_shows_what_it_prints() -> None:
    assert len(SHOWN) == PAGE.count("```python") > 4
