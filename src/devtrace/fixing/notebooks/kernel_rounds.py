"""The kernel's side of `devtrace fix NOTEBOOK.ipynb`: every cell is traced, and what was found is written last."""

import importlib.util
import json
import sys
from typing import Any, Final

from devtrace.contract import findings_json
from devtrace.diagnosis.findings import to_json
from devtrace.fixing import values
from devtrace.notebook.cells import Traced
from devtrace.runtime import overlay
from devtrace.runtime.whole_files import put

_TRACED: Final[list[Traced]] = []


def prepare(shell: Any, _: str) -> None:
    """Import what takes longest, before it is known what runs; torch is imported for simulated devices anyhow."""
    from devtrace.notebook.magic import extensions  # noqa: F401

    if importlib.util.find_spec("torch") is not None:
        importlib.import_module("torch")


def begin(shell: Any, devices: str) -> None:
    """Trace every cell from here on, on simulated devices."""
    from devtrace.notebook.magic import extensions

    overlay.use_from_environment()
    values.seed()
    shell.run_line_magic("load_ext", "devtrace")
    shell.run_line_magic("devtrace", f"simulate {devices}")
    shell.run_line_magic("devtrace", "on")
    extensions[shell].tracing.observe(_keep)


def _keep(what: str, traced: Traced | None) -> None:
    if what == "finished" and traced is not None:
        _TRACED.append(traced)


def write_findings(shell: Any, path: str) -> None:
    """Write the findings of all cells, in the order in which these ran, and the error that ended the last."""
    error = getattr(sys, "last_value", None)
    data = {
        "findings": [
            to_json(finding)
            for traced in _TRACED
            for finding in sorted(traced.report.findings, key=lambda finding: finding.op)
        ],
        "cells": _numbers(),
        "crossings": sum(sum(findings_json.counts_of(traced.report).values()) for traced in _TRACED),
        "peaks": findings_json.peaks_of(traced.report for traced in _TRACED),
        "values": values.values_of(shell.user_ns),
        "raised": error and findings_json.raised(error),
    }
    put(path, json.dumps(data))


def _numbers() -> dict[str, int]:
    """Return the number of each cell by its file, also of one that only defines what others call."""
    if "torch" not in sys.modules:
        return {}
    from devtrace.recording.columns import sites

    return {cell.file: cell.count for cell in sites.cells_so_far()}
