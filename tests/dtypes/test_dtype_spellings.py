"""Bugs of dtype as people spell them, a file each: `# cause, tensor, dtype` on top, its lines marked.

What was not recorded may have another cause, as far as the source shows it: `# untraced: cause`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from devtrace.diagnosis.edits import applied
from folders import TESTS
from programs import Outcome, run, run_untraced
from warm import Warm

HOST = ("cpu",)
FILES = sorted((TESTS / "dtypes" / "programs" / "spellings").glob("*.py"))
ADVICE = sorted((TESTS / "dtypes" / "programs" / "advice").glob("*.py"))
HEALTHY = sorted((TESTS / "dtypes" / "programs" / "healthy").glob("*.py"))
each = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
pytestmark = pytest.mark.one_in(8)


class Expected(NamedTuple):
    """Tensor, lines and cause of a program, as its comments have them."""

    cause: str
    culprit: str
    dtype: str
    born: int
    failed: int
    untraced: str

    @classmethod
    def of(cls, file: Path) -> Expected:
        lines = file.read_text().splitlines()
        cause, _, rest = lines[0].removeprefix("# ").partition(", ")
        culprit, _, dtype = rest.rpartition(", ")
        marked = {word: at for at, line in enumerate(lines, start=1) for word in line.partition("  # ")[2].split()}
        _, _, untraced = lines[1].partition("# untraced: ")
        return cls(cause, culprit, dtype, marked["born"], marked["failed"], untraced or cause)


@each
def test_the_report_names_tensor_lines_and_cause_and_its_edits_work(file: Path, warm: Warm, tmp_path: Path) -> None:
    expected = Expected.of(file)
    (finding,) = run(warm, file, HOST).errors
    assert finding.culprit is not None
    assert finding.culprit.born is not None
    assert finding.site is not None
    found = (finding.cause, finding.culprit.name, finding.culprit.dtype, finding.culprit.born.line, finding.site.line)
    assert found == expected[:5]
    (tmp_path / "bug.py").write_text(applied(file.read_text(), finding.edits))
    repaired = run(warm, tmp_path / "bug.py", HOST)
    assert (repaired.raised, repaired.alarms) == ("", [])


@each
def test_the_error_alone_shows_the_cause_too(file: Path, warm: Warm) -> None:
    expected = Expected.of(file)
    (finding,) = run_untraced(warm, file, HOST).errors
    assert finding.culprit is not None
    assert (finding.cause, finding.culprit.dtype) == (expected.untraced, expected.dtype)


@pytest.mark.parametrize("way", [run, run_untraced])
@pytest.mark.parametrize("name", ["numpy_of_an_action", "numpy_of_scores"])
def test_what_numpy_refuses_of_an_accelerators_tensor_is_found_in_its_copy(
    name: str, way: Callable[[Warm, Path], Outcome], warm: Warm
) -> None:
    (finding,) = way(warm, TESTS / "dtypes" / "programs" / "spellings" / f"{name}.py").errors
    assert (finding.rule, finding.cause) == ("dtype-mismatch", "target-dtype")
    assert [edit.after for edit in finding.edits if ".cpu().float().numpy()" in edit.after]


@pytest.mark.parametrize("file", ADVICE, ids=lambda file: file.stem)
def test_a_cast_that_would_lose_what_is_meant_is_no_edit(file: Path, warm: Warm) -> None:
    expected = Expected.of(file)
    for outcome in (run(warm, file, HOST), run_untraced(warm, file, HOST)):
        (finding,) = outcome.errors
        assert finding.culprit is not None
        assert (finding.cause, finding.culprit.name, finding.culprit.dtype) == expected[:3]
        assert (bool(finding.help), finding.edits) == (True, ())


@pytest.mark.parametrize("file", HEALTHY, ids=lambda file: file.stem)
def test_mixed_precision_that_is_meant_has_no_finding(file: Path, warm: Warm) -> None:
    outcome = run(warm, file, HOST)
    assert (outcome.raised, outcome.findings) == ("", ())


@pytest.mark.parametrize("file", HEALTHY, ids=lambda file: file.stem)
def test_mixed_precision_on_a_simulated_device_raises_no_alarm(file: Path, warm: Warm) -> None:
    outcome = run(warm, file)
    assert (outcome.raised, outcome.alarms) == ("", [])
