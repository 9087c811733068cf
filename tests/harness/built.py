"""Where the built extension lies, and whether it is what the sources say."""

from __future__ import annotations

from pathlib import Path

from folders import ROOT

EXTENSION = ROOT / "src" / "devtrace" / "labextension"
SCRIPT = ROOT / "src" / "devtrace" / "static" / "views.js"


def stale() -> str | None:
    """A sentence where the build is missing or older than a source of it, else None."""
    outputs = [EXTENSION / "package.json", SCRIPT]
    if missing := [path for path in outputs if not path.exists()]:
        return f"{missing[0].relative_to(ROOT)} is not built: run `make build`"
    sources: list[Path] = []
    for folder in ("src", "style", "schema", "words"):
        sources += (path for path in (ROOT / "labextension" / folder).rglob("*") if path.is_file())
    built = min(path.stat().st_mtime for path in outputs)
    if newer := [path for path in sources if path.stat().st_mtime > built]:
        return f"the built extension is older than {newer[0].relative_to(ROOT)}: run `make build`"
    return None
