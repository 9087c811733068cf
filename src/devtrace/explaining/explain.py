"""`devtrace.explain`: the report on a device error of a program that nobody recorded.

try:
    train()
except RuntimeError as error:
    print(devtrace.explain(error))
"""

import sys
from dataclasses import replace
from types import NoneType
from typing import Final

import numpy as np

from devtrace.api.environment import is_simulated
from devtrace.api.results import Report
from devtrace.diagnosis.ending import by_part_of_a_device
from devtrace.diagnosis.evidence.error_origins import is_raised_in_source, paths, text_of
from devtrace.diagnosis.evidence.torchs_sentences import ABOUT_DEVICES, WRAPPED, is_of_another_trait, refused
from devtrace.diagnosis.store import report_of
from devtrace.runtime.interrupts import no_collecting
from devtrace.runtime.tracebacks import last_shown
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.subset import cut
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.errors import expect_kind

_OUT_OF_MEMORY: Final = "CUDA out of memory. Tried to allocate"


@no_collecting()
def explain(error: BaseException | None = None) -> Report:
    """Explain an error; by default the one that is being handled, else the last that was shown.

    The report of an error that is not about devices has no finding.
    """
    expect_kind("explain", error, BaseException, NoneType, error="wrong-argument.error")
    error = (sys.exc_info()[1] or last_shown()) if error is None else error
    path = path_to_origin(error) if error is not None else []
    if error is None:
        return without_findings(sentence("explained.no-error"))
    if not path:
        keys = "explained.other-error", "explained.other-error-in-a-kernel", "explained.other-error-unknown"
        return without_findings(sentence(by_part_of_a_device(f"{type(error).__name__}: {text_of(error)}", *keys)))
    try:
        return _explained(path)
    except Exception as fault:  # noqa: BLE001 (a failing explanation is never the user's exception)
        return without_findings(sentence("explained.failed", fault=f"{type(fault).__name__}: {fault}"))


def path_to_origin(error: BaseException) -> list[BaseException]:
    """Return the chain of exceptions from the given one to torch's device error; empty if there is none. Cheap then.

    An error in place of torch's (`raise StepFailed from error`, an exception group, a note) counts as well. A user's
    own `raise` does not, whatever its text. Of several device errors the one nearest to the op counts.
    """
    found: list[BaseException] = []
    for path in paths(error):
        if _is_of_torch(path[-1]) and (not found or path[: len(found)] == found):
            found = path
    return found


def _is_of_torch(error: BaseException) -> bool:
    text = text_of(error)
    known = ABOUT_DEVICES.search(text) or _OUT_OF_MEMORY in text or refused(text) or is_of_another_trait(text)
    return bool(known) and (WRAPPED in text or not is_raised_in_source(error))


def explain_text(text: str) -> Report:
    """Explain a traceback that was saved as text: its lines are there, its variables are gone."""
    return explain(RuntimeError(f"Caught an error in file\n{WRAPPED}\n{text}"))


def _explained(path: list[BaseException]) -> Report:
    from devtrace.diagnosis.diagnose import diagnose_errors
    from devtrace.explaining.explanation import Explanation

    explanation = Explanation(path)
    try:
        found = explanation.make(is_simulated)
        report = diagnose_errors(found.trace, found.live)
    finally:
        explanation.forget()
    return Report.of(report_of(_seen(report.trace)))


def _seen(trace: TraceData) -> TraceData:
    """Return the trace of the failed op alone: the ops that were read from the source are not of a trace."""
    failed = np.zeros(len(trace.ops), dtype=bool)
    failed[trace.errors.ints("op")] = True
    return replace(cut(trace, failed), truncated=trace.truncated)


def without_findings(*notes: str) -> Report:
    builder = TraceBuilder()
    builder.notes += notes
    trace = builder.build()
    return Report.of(Report(trace=trace, notes=trace.notes))  # type: ignore[arg-type]
