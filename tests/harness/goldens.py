"""Goldens: text that a reviewer reads, beside the tests. `make golden` (DEVTRACE_GOLDEN=write) rewrites them."""

from __future__ import annotations

import os
from pathlib import Path

from folders import TESTS

GOLDEN = TESTS / "golden"


def assert_golden(name: str, text: str, folder: Path = GOLDEN) -> None:
    """Hold `text` equal to the golden; on a difference the text stands in `actual/` beside it, for a diff by hand."""
    golden = folder / name
    if os.environ.get("DEVTRACE_GOLDEN") == "write":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
        return
    expected = golden.read_text(encoding="utf-8") if golden.exists() else ""
    if text != expected:
        actual = TESTS / "actual" / name
        actual.parent.mkdir(parents=True, exist_ok=True)
        actual.write_text(text, encoding="utf-8")
    assert text == expected, f"{name} is stale: read tests/actual/{name}, then run `make golden` if it is right"
