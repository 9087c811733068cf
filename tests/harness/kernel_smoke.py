"""What the kernel does whichever feature it lacks: in a process of its own, with the sources of a copy."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import devtrace
from devtrace.cli.main import main as devtrace_main
from devtrace.features import offers
from shells import new_shell

HAS_DEVICES = bool(offers("devices"))
DEVICES, DEVICE = ("cuda:1", "cuda:0") if HAS_DEVICES else (None, "cpu")
PROGRAM = f"""
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
model.to("{DEVICE}")
model[1] = torch.nn.Linear(8, 2)
model(torch.ones(1, 8, device="{DEVICE}"))
"""


def look_at(report: devtrace.Report) -> None:
    assert report.text.strip()
    page = report.to_html("report.html").read_text(encoding="utf-8")
    assert "</html>" in page
    report.trace.save("run.devtrace")
    devtrace_main(["report", "run.devtrace", "--json", "run.json"])
    assert len(json.loads(Path("run.json").read_text())["findings"]) == len(report.findings)


def record() -> None:
    with suppress(RuntimeError), devtrace.record(DEVICES) as recording:
        exec(compile(PROGRAM, "program.py", "exec"), {})
    assert len(recording.trace.ops)
    assert any(finding.severity == "error" for finding in recording.report.findings) == HAS_DEVICES
    look_at(recording.report)


def use_magics() -> None:
    flag = f" --simulate {DEVICES}" if HAS_DEVICES else ""
    with new_shell() as shell:
        for cell in (
            "%load_ext devtrace",
            f"%%devtrace{flag}\n{PROGRAM}",
            "%devtrace status",
            "%devtrace help",
            "1 / 0",
        ):
            ran = shell.run(cell)
            assert ran.text.strip() or cell == "%load_ext devtrace"
            assert isinstance(ran.error, ZeroDivisionError if cell == "1 / 0" else RuntimeError | None)
        assert len(shell.traced) == 1
        assert shell.run("%devtrace devices").error is None


def ask_for_devices() -> None:
    """Without simulated devices there is one sentence, and the program does not run."""
    Path("x.py").write_text("import torch\nprint(torch.ones(1))\n")
    command = [sys.executable, "-m", "devtrace", "run", "--simulate", "cuda:1", "x.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("devtrace: simulate-absent: got cuda:1; this installation of devtrace has no ")
    assert done.stderr.count("\n") == 1


def main(*traces: str) -> None:
    """Try all of it, and read traces that the whole package saved."""
    assert all(hasattr(devtrace, name) for name in devtrace.__all__)
    for file in traces:
        look_at(devtrace.diagnose(devtrace.load(file)))
    record()
    use_magics()
    with suppress(SystemExit):
        devtrace_main(["--help"])
    if not HAS_DEVICES:
        ask_for_devices()
