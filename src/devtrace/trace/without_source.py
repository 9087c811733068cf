"""A trace without lines of source, for sharing: what a bug report needs, and nobody's code.

Names of files, variables and modules stay, and what findings quote. Edits are code, and so go.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from devtrace.trace.columns import TABLES
from devtrace.trace.tables import TraceData
from devtrace.words.text_format import one_line


def without_source(trace: TraceData) -> TraceData:
    """Return the trace without the text of its sites and sources; text that nothing else refers to leaves the file."""
    strings = trace.strings if "" in trace.strings else (*trace.strings, "")
    sites = {**trace.values["sites"], "text": np.full(len(trace.sites), strings.index(""), np.int32)}
    sources = {name: np.zeros(0, np.int32) for name in trace.values["sources"]}
    bare = replace(trace, strings=strings, values={**trace.values, "sites": sites, "sources": sources})
    texts = [(table, each.name) for table, columns in TABLES.items() for each in columns if each.kind == "text"]
    used = {id for table, name in texts for id in bare.table(table).ints(name).tolist()}
    kept = tuple(text if id in used else "" for id, text in enumerate(strings))
    findings = None if trace.findings is None else tuple(_without_code(each) for each in trace.findings)
    return replace(bare, strings=kept, findings=findings)


def _without_code(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding without its edits, and without their code in its advice."""
    help = finding["help"]
    for edit in finding["edits"]:
        code = edit["after"].strip()
        help = "..." if help == code else help.replace(f"`{one_line(code)}`", "`...`")
    return {**finding, "edits": [], "help": help}
