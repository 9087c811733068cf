"""Runs a rule, which may be another package's: one that fails is one line in the report and silences no other."""

from collections.abc import Callable, Iterable
from typing import Any

from devtrace.diagnosis.findings import Finding
from devtrace.features import faults
from devtrace.words.catalogue import sentence
from devtrace.words.errors import named


def left_out() -> list[str]:
    """Return a note on each package whose rules could not be loaded."""
    return [sentence("report.package-failed", name=name, fault=fault) for name, fault in faults().items()]


def run_rule(
    load: Callable[[], Any], arguments: Iterable[Any], name: str, findings: list[Finding], notes: list[str]
) -> None:
    """Add what a rule finds, or a note if it fails; loading it may fail, too."""
    try:
        findings += load()(*arguments)
    except Exception as fault:  # noqa: BLE001 (whatever it is, other rules go on)
        notes.append(failed_rule(name, fault))


def failed_rule(name: str, fault: Exception) -> str:
    return sentence("report.rule-failed", name=name, fault=named(fault))
