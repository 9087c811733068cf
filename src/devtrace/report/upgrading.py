"""Html that upgrades itself: the static report, and a script that puts the views in its place once they stand.

Each output has all that it needs, as outputs may be shown in any order and one by one. The script of the views is
deflated; the page inflates it without asking for anything, which a page in a sandbox may not. Where scripts do not
run, are removed or forbidden, or anything fails, the static report stays and the page has no error.
"""

import base64
import zlib
from functools import cache
from typing import Any, Final

from devtrace.diagnosis.findings import ReportData
from devtrace.report.page import built, scripted, views
from devtrace.report.renderer import FRAME_HEIGHT

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


def upgrading(report: ReportData, data: dict[str, Any], above: str = "") -> str:
    """Write the static report with `above` over it, and the script where the views are built."""

    def script(slot: str, trace: str) -> str:
        size, text = _packed(_views(report))
        return _LOADER % {"slot": slot, "height": FRAME_HEIGHT, "views": text, "size": size, "trace": trace}

    return scripted(report, data, above, script)


def script_size(report: ReportData) -> int:
    """Return the bytes that the script of the views adds to an output."""
    return len(_packed(_views(report))[1]) + len(_LOADER) if built() else 0


def _views(report: ReportData) -> str:
    """Return the views in the language in which a report was made, and those alone that it has anything for."""
    return views(report.trace.language or "en", memory=bool(report.trace.memory))


@cache
def _packed(script: str) -> tuple[int, str]:
    """Return a script deflated, as text: how many bytes that is, and five letters for each four of them."""
    deflated = zlib.compress(script.encode(), 9)
    return len(deflated), base64.b85encode(deflated, pad=True).translate(_HARMLESS).decode()


_LETTERS: Final = bytes(letter for letter in range(35, 127) if letter not in b"&<>\\")[:85]
"""They neither end a string of a script or of JSON nor are markup; base64 would take a fifteenth more."""
_HARMLESS: Final = bytes.maketrans(base64.b85encode(b"".join(n.to_bytes(4, "big") for n in range(85)))[4::5], _LETTERS)
