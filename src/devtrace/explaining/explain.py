"""`devtrace.explain`: the report on a device error of a program that nobody recorded.

try:
    train()
except RuntimeError as error:
    print(devtrace.explain(error))
"""

import sys
from types import NoneType

from devtrace.api.environment import is_simulated
from devtrace.api.results import Report, Trace, diagnose
from devtrace.diagnosis.ending import by_part_of_a_device
from devtrace.diagnosis.evidence.error_origins import path_to_origin, text_of
from devtrace.diagnosis.evidence.torchs_sentences import WRAPPED
from devtrace.runtime.interrupts import no_collecting
from devtrace.runtime.tracebacks import last_shown
from devtrace.trace.builder import TraceBuilder
from devtrace.words.catalogue import sentence
from devtrace.words.errors import expect_kind, named


@no_collecting()
def explain(error: BaseException | None = None) -> Report:
    """Return the report of `error`: by default, the error that `except` just caught, or else the last printed one."""
    expect_kind("explain", error, BaseException, NoneType, error="wrong-argument.error")
    error = (sys.exc_info()[1] or last_shown()) if error is None else error
    path = path_to_origin(error) if error is not None else []
    if error is None:
        return without_findings(sentence("explained.no-error"))
    if not path:
        keys = "explained.other-error", "explained.other-error-in-a-kernel", "explained.other-error-unknown"
        return without_findings(sentence(by_part_of_a_device(f"{type(error).__name__}: {text_of(error)}", *keys)))
    try:
        return _report_of_path(path)
    except Exception as fault:  # noqa: BLE001 (a failing explanation is never the user's exception)
        return without_findings(sentence("explained.failed", fault=named(fault)))


def explain_text(text: str) -> Report:
    """Explain a traceback that was saved as text: its lines are there, its variables are gone."""
    return explain(RuntimeError(f"Caught an error in file\n{WRAPPED}\n{text}"))


def _report_of_path(path: list[BaseException]) -> Report:
    from devtrace.explaining.explanation import Explanation

    explanation = Explanation(path)
    try:
        recorded = explanation.make(is_simulated)
        report = diagnose(recorded.trace, recorded.snapshot)
    finally:
        explanation.forget()
    return report


def without_findings(*notes: str) -> Report:
    builder = TraceBuilder()
    builder.notes += notes
    trace = Trace.of(builder.build())
    return Report(trace, notes=trace.notes)
