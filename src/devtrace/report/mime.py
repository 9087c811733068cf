"""The MIME bundle of a report: our own type for the renderer, html where there is none, findings for programs, text.

    publish(*mime_bundle(report))

A notebook is a file that people commit and mail: above a budget the bundle holds fewer ops, and says so.
The html upgrades itself: a script puts the views in the place of the static report once they stand.
"""

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from devtrace.contract.findings_json import FINDINGS_TYPE, MOST_BYTES, compact, size
from devtrace.diagnosis.findings import ReportData
from devtrace.report import renderer
from devtrace.report.html import fragment
from devtrace.report.page import built, scripted, views
from devtrace.report.renderer import FRAME_HEIGHT
from devtrace.report.text import text
from devtrace.trace.format import encode
from devtrace.trace.subset import around, cut
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import escape_invisible

MIME_TYPE: Final = "application/vnd.devtrace.v1+json"
BUDGET: Final = 1_500_000
"""Bytes of a trace in a notebook: 100,000 ops (what a recording keeps) of a training loop at 12 bytes, and some."""
LONGEST_TEXT: Final = 100_000


def mime_bundle(
    report: ReportData,
    *,
    timeline: bool = True,
    budget: int = BUDGET,
    beside: Callable[[TraceData], dict[str, Any]] = lambda trace: {},
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the report by MIME type, and metadata (none). Without `timeline` the html is text only.

    As much of the trace as fits is there as data, or within html whose script shows it, and not twice.
    `beside` gives what the data has beside the trace.
    """
    script = timeline and renderer.sends_script()
    for_programs = compact(report, most=MOST_BYTES)
    other_bytes = size(for_programs) + (script_size(report) if script else 0)  # of the same output
    trace, data = fitted(report.trace, max(budget - other_bytes, budget // 2))
    report, data = replace(report, trace=trace), data | beside(trace)
    words = {FINDINGS_TYPE: for_programs, "text/plain": plain_text(report)}
    if script and built():
        return {"text/html": scripted(report, data, partial(_loader, report))} | words, {}
    return {MIME_TYPE: data, "text/html": fragment(report, picture=timeline)} | words, {}


def fitted(trace: TraceData, budget: int) -> tuple[TraceData, dict[str, Any]]:
    """Return as much of the trace as encodes to so many bytes, and its encoding."""
    data, ops, notes = encode(trace), len(trace.ops), trace.notes
    while (size := len(json.dumps(data))) > budget and ops > 1:
        ops = min(int(ops * 0.9 * budget / size), ops // 2)
        shorter = cut(trace, around(trace, max(ops, 1)))
        trace = replace(shorter, notes=(*notes, sentence("note.cut", count=len(shorter.ops), size=size)))
        data = encode(trace)
    return trace, data


def plain_text(report: ReportData) -> str:
    words = text(report)
    return words if len(words) <= LONGEST_TEXT else escape_invisible(words, LONGEST_TEXT)


# Each output has all that it needs, as outputs may be shown in any order and one by one. The script of the views is
# deflated; the page inflates it without asking for anything, which a page in a sandbox may not. Where scripts do not
# run, are removed or forbidden, or anything fails, the static report stays and the page has no error.
#
# A front end that gives an output a frame measures it when it loads: the static report then stands at the height that
# the views will need. The same output may stand twice in a page: each script takes the first slot that no other took.
_LOADER: Final = """(()=>{
const slot=document.querySelector("#%(slot)s:not([data-taken])");
if(!slot)return;
slot.dataset.taken="";
if(window.parent!==window)slot.style.minHeight="%(height)dpx";
(async()=>{try{
const t="%(views)s";
const b=new DataView(new ArrayBuffer(t.length/5*4));
for(let at=0;at<t.length;at+=5){
let word=0;
for(let i=at;i<at+5;i++){const n=t.charCodeAt(i);word=word*85+n-35-(n>38)-(n>60)-(n>62)-(n>92);}
b.setUint32(at/5*4,word);
}
const sent=new Blob([b.buffer.slice(0,%(size)d)]).stream().pipeThrough(new DecompressionStream("deflate"));
const tag=document.createElement("script");
tag.textContent=await new Response(sent).text();
document.head.append(tag);
tag.remove();
await devtraceMount.upgrade(slot,%(trace)s);
}catch{}})();
})()""".replace("\n", "")


def _loader(report: ReportData, slot: str, trace: str) -> str:
    """Write the script that puts the views into a slot."""
    size, text = _deflated_text(_views(report))
    return _LOADER % {"slot": slot, "height": FRAME_HEIGHT, "views": text, "size": size, "trace": trace}


def script_size(report: ReportData) -> int:
    """Return the bytes that the script of the views adds to an output."""
    return len(_deflated_text(_views(report))[1]) + len(_LOADER) if built() else 0


def _views(report: ReportData) -> str:
    """Return the views in the language in which a report was made, and those alone that it has anything for."""
    return views(report.trace.language or "en", memory=bool(report.trace.memory))


@cache
def _deflated_text(script: str) -> tuple[int, str]:
    """Return a script deflated, as text: how many bytes that is, and five letters for each four of them."""
    deflated = zlib.compress(script.encode(), 9)
    return len(deflated), base64.b85encode(deflated, pad=True).translate(_HARMLESS).decode()


_LETTERS: Final = bytes(letter for letter in range(35, 127) if letter not in b"&<>\\")[:85]
"""They neither end a string of a script or of JSON nor are markup; base64 would take a fifteenth more."""
_HARMLESS: Final = bytes.maketrans(base64.b85encode(b"".join(n.to_bytes(4, "big") for n in range(85)))[4::5], _LETTERS)
