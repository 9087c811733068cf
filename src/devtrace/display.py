"""The MIME bundle of a traced cell: our type for the renderer, html and text where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

MIME_TYPE = "application/vnd.devtrace.v1+json"


def bundle(title: str, counts: Mapping[str, int]) -> dict[str, object]:
    rows = sorted(counts.items(), key=lambda row: -row[1])
    text = "\n".join([f"{title} ops by device", *(f"  {device:<8} {ops}" for device, ops in rows)])
    cells = "".join(f"<tr><td>{escape(device)}</td><td>{ops}</td></tr>" for device, ops in rows)
    return {
        MIME_TYPE: {"format": "devtrace", "version": 1, "title": title, "counts": dict(rows)},
        "text/html": f"<table><caption>{escape(title)} ops by device</caption>{cells}</table>",
        "text/plain": text,
    }
