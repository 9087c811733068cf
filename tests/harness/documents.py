"""README and the pages of docs/, which tests hold to what the code does."""

from __future__ import annotations

from typing import Final

from folders import ROOT

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
_DOCS: Final = ROOT / "docs"
PAGES: Final = {
    path.relative_to(_DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(_DOCS.rglob("*.md"))
}
ALL: Final = "\n".join((README, *PAGES.values()))
