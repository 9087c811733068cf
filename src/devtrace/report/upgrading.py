"""Html that upgrades itself: the static report, and a script that puts the views in its place once they stand.

Each output has all that it needs, as outputs may be shown in any order and one by one. The script of the views is
deflated; the page inflates it without asking for anything, which a page in a sandbox may not. Where scripts do not
run, are removed or forbidden, or anything fails, the static report stays and the page has no error.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from functools import cache
from typing import Any, Final

from devtrace.diagnosis.findings import ReportData
from devtrace.report.html import fragment
from devtrace.report.page import as_script, built, views
from devtrace.report.renderer import FRAME_HEIGHT

# A front end that gives an output a frame measures it when it loads: the static report then stands at the height that
# the views will need. The same output may stand twice in a page: each script takes the first slot that no other took.
_LOADER: Final = """(()=>{
const slot=document.querySelector("#%(slot)s:not([data-taken])");
if(!slot)return;
slot.dataset.taken="";
if(window.parent!==window)slot.style.minHeight="%(height)dpx";
(async()=>{try{
const bytes=Uint8Array.from(atob("%(views)s"),each=>each.charCodeAt(0));
const inflated=new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
const script=document.createElement("script");
script.textContent=await new Response(inflated).text();
document.head.append(script);
script.remove();
await devtraceMount.upgrade(slot,%(trace)s);
}catch{}})();
})()"""


def upgrading(report: ReportData, data: dict[str, Any], above: str = "") -> str:
    """Write the static report with `above` over it, and the script where the views are built."""
    static = above + fragment(report)
    if not built():
        return static
    trace = as_script(data)
    slot = f"devtrace-{hashlib.sha256(trace.encode()).hexdigest()[:16]}"
    script = _LOADER % {
        "slot": slot,
        "height": FRAME_HEIGHT,
        "views": _deflated(views(_language(report))),
        "trace": trace,
    }
    return f'<div id="{slot}">{static}</div>\n<script>{script}</script>'


def script_size(report: ReportData) -> int:
    """Return the bytes that the script of the views adds to an output."""
    return len(_deflated(views(_language(report)))) + len(_LOADER) if built() else 0


def _language(report: ReportData) -> str:
    """Return the language in which a report was made: its output needs no other."""
    return report.trace.language or "en"


@cache
def _deflated(script: str) -> str:
    return base64.b64encode(zlib.compress(script.encode(), 9)).decode()
