"""A program under `devtrace run` is told the same as a block that does the same."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import devtrace
from devtrace.diagnose import diagnose
from devtrace.report import Finding, Report

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).with_name("corpus")
CASES = sorted(path.stem.removesuffix(".expected") for path in CORPUS.glob("*.expected.json"))[::20]


def said(report: Report) -> list[tuple[object, ...]]:
    return sorted((_said(finding) for finding in report.findings), key=str)


def _said(finding: Finding) -> tuple[object, ...]:
    culprit = finding.culprit
    told = (culprit.name, culprit.device, str(culprit.born), str(culprit.moved)) if culprit else ()
    return finding.rule, finding.severity, finding.cause, finding.devices, str(finding.site), finding.count, told


def recorded(script: Path, call: str) -> Report:
    spec = importlib.util.spec_from_file_location("case", script)
    assert spec is not None
    assert spec.loader is not None
    case = importlib.util.module_from_spec(spec)
    recording = devtrace.record(simulate="cuda:2")
    try:
        with recording:
            spec.loader.exec_module(case)
            eval(call, vars(case))
    except RuntimeError:
        pass
    return recording.report


@pytest.mark.parametrize("name", CASES)
def test_a_script_under_devtrace_run_is_told_what_a_recording_tells(name: str, tmp_path: Path) -> None:
    expected = json.loads((CORPUS / f"{name}.expected.json").read_text())["call"]
    call = f"{expected['function']}({', '.join(map(repr, expected['args']))})"
    for part in CORPUS.glob(f"{name}*.py"):
        (tmp_path / part.name).write_text(part.read_text())
    script = tmp_path / f"{name}.py"
    script.write_text(script.read_text() + f'\n\nif __name__ == "__main__":\n    {call}\n')
    command = [sys.executable, "-m", "devtrace", "run", "--simulate", "cuda:2", "--save", "o.devtrace", script.name]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    under_run = diagnose(devtrace.load(tmp_path / "o.devtrace"))
    assert said(under_run) == said(recorded(script, call))
    assert under_run.findings
