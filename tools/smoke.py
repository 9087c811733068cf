"""Does devtrace work here at all? CI asks it of systems that nobody develops on: import, record, simulate, report, CLI.

python tools/smoke.py       prints a line a check, and fails at the first that does not hold
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import devtrace

BROKEN = """import torch

model = torch.nn.Linear(2, 2).to("cuda:0")
model(torch.ones(1, 2))
"""


def main() -> None:
    with devtrace.record("cuda:2") as recording:
        x = torch.ones(3, device="cuda:1")
        total = float((x * 2).sum())
    check("a simulated device computes", total == 6.0)
    check("a recording has its ops", any(op.device == "cuda:1" for op in recording.trace.ops))
    check("a report has text", "cuda:1" in recording.report.text)
    with tempfile.TemporaryDirectory() as folder:
        in_folder(Path(folder), recording)


def in_folder(folder: Path, recording: devtrace.record) -> None:
    file = recording.trace.save(folder / "run.devtrace")
    check("a trace is read back", len(devtrace.load(file).ops) == len(recording.trace.ops))
    check("a page is written", recording.report.to_html(folder / "run.html").stat().st_size > 1_000)
    (folder / "broken.py").write_text(BROKEN)
    ran = command(folder, "run", "--simulate", "cuda:1", "--json", "a.json", "--save", "a.devtrace", "broken.py")
    found = json.loads((folder / "a.json").read_text(encoding="utf-8"))["findings"]
    check("a program keeps its exit code", ran.returncode == 1)
    check("its error is found", [each["rule"] for each in found][:1] == ["device-mismatch"])
    reported = command(folder, "report", "a.devtrace", "--json=compact")
    check("a report of a file fails a gate", reported.returncode == 1)
    check("and is read by a program", json.loads(reported.stdout)["findings"][0]["site"]["line"] == 4)
    check("the environment is described", command(folder, "check").returncode == 0)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "devtrace", *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", check=False)


def check(what: str, holds: bool) -> None:
    print(f"{'ok' if holds else 'FAILED'}: {what}")
    if not holds:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
