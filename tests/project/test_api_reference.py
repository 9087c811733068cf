"""The reference of the API: each public name has a part, and every example of it runs."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pytest

import devtrace
from documents import PAGES

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
