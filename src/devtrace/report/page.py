"""The interactive report as a page that opens offline.

It contains the trace as JSON, the script of the views from `static/`, and the static fragment. The views, which are
built with the extension, replace the fragment when they run. Data within a script can end neither the script nor the
page.
"""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from devtrace.diagnosis.findings import ReportData
from devtrace.report.html import fragment
from devtrace.runtime.whole_files import put
from devtrace.trace.format import encode
from devtrace.words import language
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import escape_markup, safe_line

TAGS: Final[dict[language.Language, str]] = {"en": "en", "zh": "zh-CN"}
STATIC: Final = Path(__file__).parents[1] / "static"
_NOTHING_FROM_OUTSIDE: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)
_PAGE_STYLE: Final = (
    ":root{color-scheme:light dark}body{margin:16px 24px;font:14px/1.5 system-ui,sans-serif;max-width:1600px}"
    "@media(prefers-color-scheme:dark){body{background:#111417}}code{font-family:ui-monospace,monospace;font-size:.92em}"
)


def to_html(report: ReportData, path: str | Path) -> Path:
    """Write `page` as one file with all views, which opens without a network."""
    return put(path, page(report))


def page(report: ReportData) -> str:
    title = escape_markup(safe_line(f"devtrace {report.trace.title}", 100))
    body = scripted(report, encode(report.trace), _mounting_script)
    missing = "" if built() else f"<p><small>{sentence('page.no-views')}</small></p>"
    tag = TAGS[language.of_tag(report.trace.language) or "en"]
    return (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_FROM_OUTSIDE}">\n'
        f"<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n{body}{missing}\n</body>\n</html>\n"
    )


def scripted(report: ReportData, data: dict[str, Any], script: Callable[[str, str], str]) -> str:
    """Write the static fragment and, where the views are built, the script that replaces it by them.

    `script` is given the id of what is to be replaced, and the trace as an expression.
    """
    static = fragment(report)
    if not built():
        return static
    text = as_script(data)
    slot = f"devtrace-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return f'<div id="{slot}">{static}</div>\n<script>{script(slot, text)}</script>'


def as_script(value: object) -> str:
    """Write JSON that is a JavaScript expression too, and can neither end the script nor begin a comment of html."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _mounting_script(slot: str, trace: str) -> str:
    begin = f"const slot=document.getElementById('{slot}');slot.replaceChildren();devtraceMount(slot,{trace})"
    return f"{views()};\n(()=>{{{begin}}})()"


def built() -> bool:
    """Return whether the views are there, which come with the extension."""
    return (STATIC / "views.js").exists()


@cache
def views(language: str = "", *, memory: bool = True) -> str:
    """Read the built script, in one language alone or in all, so escaped that it cannot end its element.

    In one language it may be without the view of memory, in which most traces have nothing to show.
    """
    one_language = STATIC / f"views.{language}{'.memory' if memory else ''}.js"
    script = one_language if language and one_language.exists() else STATIC / "views.js"
    return script.read_text(encoding="utf-8").replace("</", "<\\/")
