"""`make gallery`: one page with every golden trace, in both themes, for whoever works on the views."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
SCRIPT = ROOT / "src" / "devtrace" / "static" / "views.js"
PAGE = ROOT / "build" / "gallery.html"
THEMES = {"light": "#ffffff", "dark": "#111417"}


def inline_json(text: str) -> str:
    """JSON that stands in a script element: `</script>` cannot end it."""
    return json.dumps(json.loads(text)).replace("<", "\\u003c")


def section(path: Path, theme: str) -> str:
    slot = f'<div data-dt-theme="{theme}" style="background: {THEMES[theme]}; padding: 12px"></div>'
    trace = inline_json(path.read_text(encoding="utf-8"))
    return f"{slot}<script>devtraceMount(document.currentScript.previousElementSibling, {trace})</script>"


def page(traces: list[Path]) -> str:
    script = SCRIPT.read_text(encoding="utf-8")
    parts = [f'<!doctype html><meta charset="utf-8"><title>devtrace gallery</title><script>{script}</script>']
    for path in traces:
        parts += [f"<h2>{escape(path.stem)}</h2>", *(section(path, theme) for theme in THEMES)]
    return "\n".join(parts)


def golden_traces() -> list[Path]:
    return sorted(GOLDEN.rglob("*.devtrace"))


def main() -> None:
    traces = golden_traces()
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(traces), encoding="utf-8")
    print(f"{len(traces)} traces: open {PAGE.as_uri()}")


if __name__ == "__main__":
    main()
