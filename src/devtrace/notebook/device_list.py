"""`%devtrace devices`: what the sidebar lists, as a report of its own, for front ends without our panel.

Names by device, mixed models with their parts that lie elsewhere, and the findings of all cells.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from devtrace.notebook.cells import Traced, Tracing
from devtrace.notebook.inventory.inventory import Row, drain, whole_listing
from devtrace.report import palette
from devtrace.words.catalogue import comma, sentence
from devtrace.words.text_format import escape_markup, format_bytes, format_memory, safe_line

MOST_NAMES: Final = 100
MOST_FINDINGS: Final = 20


Section = tuple[str, tuple[tuple[str, str], ...]]
"""A heading with its lines; a line has a name in front."""


def device_list(tracing: Tracing) -> dict[str, str]:
    """Return the list by MIME type; nothing of the notebook's names is run or changed."""
    inventory = drain(whole_listing(tracing.names_of_user(), simulated=bool(tracing.simulated)))
    sections = (*_device_sections(inventory), _findings_section(_last_of_each_cell(tracing.history)))
    text = "\n\n".join("\n".join([heading, *_aligned_lines(lines)]) for heading, lines in sections)
    html = "\n".join(f"<div><b>{escape_markup(heading)}</b></div>\n{_html_table(lines)}" for heading, lines in sections)
    return {"text/html": f'<div data-devtrace="devices">\n{html}\n</div>', "text/plain": text}


def _device_sections(inventory: Row) -> Iterator[Section]:
    if not inventory["devices"]:
        yield sentence("devices.none"), ()
    for total in inventory["devices"]:
        device = total["device"]
        rows = [row for row in inventory["holdings"] if any(share["device"] == device for share in row["devices"])]
        simulated = sentence("devices.simulated") if total["simulated"] else ""
        size = sentence("devices.total", count=total["tensors"], size=total["bytes"])
        lines = [line for row in rows[:MOST_NAMES] for line in _holding_lines(row, device)]
        more = len(rows) - MOST_NAMES
        left_out = [("", sentence("devices.more", count=more))] if more > 0 else []
        yield f"{device}{simulated}{size}", (*_memory_lines(total), *lines, *left_out)


def _memory_lines(total: Row) -> Iterator[tuple[str, str]]:
    if "memory" in total:
        used, highest, limit = (format_memory(total["memory"][name]) for name in ("used", "highest", "limit"))
        key = "devices.in-use-of" if total["memory"]["limit"] else "devices.in-use"
        yield "", sentence(key, size=used, highest=highest, limit=limit)
        for holder in total["memory"]["holders"]:
            yield "", sentence("memory-peak.part", size=format_memory(holder["bytes"]), what=holder["what"])


def _holding_lines(row: Row, device: str) -> Iterator[tuple[str, str]]:
    here = next(share for share in row["devices"] if share["device"] == device)
    names = " = ".join(safe_line(name, 60) for name in [row["name"], *row["names"]][:3])
    yield names, f"{_type_and_shape(row)}  {format_bytes(here['bytes'])}"
    for part in row.get("parts", ()):
        if any(share["device"] == device for share in part["devices"]):
            yield f"  {safe_line(row['name'], 60)}.{safe_line(part['path'], 80)}", _type_and_shape(part)


def _type_and_shape(row: Row) -> str:
    shape = f" {row['dtype']} {tuple(row['shape'])}" if "shape" in row else ""
    return f"{safe_line(row['type'], 60)}{shape}"


def _last_of_each_cell(history: Iterable[Traced]) -> list[Traced]:
    """Return the trace of each cell's last run, the newest last, as the sidebar lists them."""
    last: dict[str, Traced] = {}
    for traced in history:
        key = traced.cell.id or traced.label
        last.pop(key, None)
        last[key] = traced
    return list(last.values())


def _findings_section(history: list[Traced]) -> Section:
    findings = [
        (traced, finding)
        for traced in reversed(history)
        for finding in traced.report.findings
        if finding.severity != "note"
    ]
    lines = [
        (f"{palette.sign(finding.severity)} {finding.site or traced.label}", safe_line(finding.message, 400))
        for traced, finding in findings[:MOST_FINDINGS]
    ]
    more = len(findings) - MOST_FINDINGS
    left_out = [("", sentence("report.more", count=more))] if more > 0 else []
    cells = comma().join(traced.label for traced in history)
    heading = sentence("devices.findings", cells=cells) if cells else sentence("devices.no-cells")
    return heading if findings or not cells else sentence("devices.no-findings", cells=cells), (*lines, *left_out)


def _aligned_lines(lines: tuple[tuple[str, str], ...]) -> list[str]:
    width = min(max((len(name) for name, _ in lines), default=0), 40)
    return [f"  {name:<{width}}  {rest}".rstrip() for name, rest in lines]


def _html_table(lines: tuple[tuple[str, str], ...]) -> str:
    rows = (f"<tr><td>{escape_markup(name)}</td><td>{escape_markup(rest, 500)}</td></tr>" for name, rest in lines)
    return f"<table>{''.join(rows)}</table>" if lines else ""
