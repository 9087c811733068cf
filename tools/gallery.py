"""`make gallery`: one page with every golden trace, in both themes, for whoever works on the views."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
STATIC = ROOT / "src" / "devtrace" / "static"
PAGE = ROOT / "build" / "gallery.html"
THEMES = {"light": "#ffffff", "dark": "#111111"}


def inline_json(text: str) -> str:
    """JSON that stands in a script element: `</script>` cannot end it."""
    return json.dumps(json.loads(text)).replace("<", "\\u003c")


def main() -> None:
    parts = []
    traces = sorted(GOLDEN.rglob("*.devtrace"))
    for path in traces:
        parts.append(f"<h2>{escape(path.stem)}</h2>")
        for theme, background in THEMES.items():
            light = str(theme == "light").lower()
            parts.append(f'<div data-jp-theme-light="{light}" style="background: {background}; padding: 12px"></div>')
            parts.append(
                "<script>devtrace.show(document.currentScript.previousElementSibling, "
                f"{inline_json(path.read_text(encoding='utf-8'))})</script>"
            )
    style, script = ((STATIC / name).read_text(encoding="utf-8") for name in ("views.css", "views.js"))
    page = f'<!doctype html><meta charset="utf-8"><title>devtrace gallery</title><style>{style}</style>'
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(f"{page}<script>{script}</script>{''.join(parts)}", encoding="utf-8")
    print(f"{len(traces)} traces: open {PAGE.as_uri()}")


if __name__ == "__main__":
    main()
