"""A finding over dtypes comes out alike as text, JSON, SARIF, html and a trace, from `fix`, a test and ranks."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import devtrace
from devtrace.jobs.merge import merge
from warm import LIMIT, Warm

pytestmark = pytest.mark.slow
PROGRAM = """import torch
from torch import nn


def build():
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
    net.bfloat16()
    net.append(nn.Linear(8, 2))
    return net


net = build()
x = torch.ones(3, 6, dtype=torch.bfloat16)
print(net(x).float().sum().item())
"""
BEGINS = {
    "en": "`net.2.weight` and `.bias` are float32; the other 2 tensors of `net` are bfloat16.",
    "zh": "`net.2.weight`",
}
TEST = """import pytest, torch
from program_parts import build

@pytest.mark.devices
def test_half():
    net = build()
    net(torch.ones(3, 6, dtype=torch.bfloat16))
"""


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_run_writes_it_as_text_json_sarif_html_and_a_trace(language: str, warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    outputs = ("--json", "a.json", "--sarif", "a.sarif", "--html", "a.html", "--save", "a.devtrace")
    got = warm.devtrace(tmp_path, "run", *outputs, "program.py", environment={"DEVTRACE_LANGUAGE": language})
    assert BEGINS[language] in " ".join(got.stderr.split())
    (finding,) = json.loads((tmp_path / "a.json").read_text())["findings"]
    assert (finding["rule"], finding["cause"], finding["severity"]) == (
        "dtype-mismatch",
        "attached-after-cast",
        "error",
    )
    assert (finding["culprit"]["name"], finding["culprit"]["dtype"]) == ("net.2.weight", "float32")
    assert (finding["culprit"]["born"]["line"], finding["culprit"]["moved"]["line"]) == (8, 7)
    assert [(edit["after"], edit["grade"]) for edit in finding["edits"]] == [("net.bfloat16()", "not tried")]
    (result,) = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("dtype-mismatch", "error")
    assert [each["physicalLocation"]["region"]["startLine"] for each in result["relatedLocations"]] == [8, 7]
    assert "dtype-mismatch" in (tmp_path / "a.html").read_text()
    (loaded,) = devtrace.load(tmp_path / "a.devtrace").findings or ()
    assert loaded["rule"] == "dtype-mismatch"


def test_fix_writes_the_cast_and_calls_it_tried_since_nothing_can_be_compared(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    got = ran(tmp_path, "devtrace", "fix", "--write", "program.py")
    assert got.returncode == 0, got.stderr
    assert program.read_text() == PROGRAM.replace("net = build()\n", "net = build()\nnet.bfloat16()\n")
    assert "+net.bfloat16()" in got.stdout
    assert "tried, not proven" in got.stderr


def test_a_test_that_fails_over_dtypes_shows_it(tmp_path: Path) -> None:
    (tmp_path / "program_parts.py").write_text(PROGRAM.partition("\n\nnet =")[0])
    (tmp_path / "test_half.py").write_text(TEST)
    got = ran(tmp_path, "pytest", "-p", "devtrace.api.pytest_plugin", "-q", "test_half.py")
    assert "attached, so it stayed float32" in " ".join(got.stdout.split())
    assert "add `net.bfloat16()`" in got.stdout


def test_two_ranks_that_fail_over_dtypes_are_a_finding_for_each_line_once(tmp_path: Path) -> None:
    def failing() -> devtrace.Trace:
        with pytest.raises(RuntimeError, match="same dtype"), devtrace.record() as recording:
            runpy.run_path(str(program))
        return recording.trace

    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (finding,) = devtrace.diagnose(merge([failing(), failing()])).findings
    assert (finding.rule, finding.cause) == ("dtype-mismatch", "attached-after-cast")
    assert "On all 2 ranks: `net.2.weight` and `.bias` are float32" in finding.message
