"""What a job of continuous integration installs: with torch and numpy alone devtrace records, reports and simulates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("IPython", "ipywidgets", "jupyterlab", "jupyter_server", "plotly", "traitlets"):
            raise ImportError(name)

sys.meta_path.insert(0, Without())
import devtrace, torch
from devtrace.cli.main import main

with devtrace.record("cuda:1") as recording:
    weight = torch.ones(3)
    torch.ones(3, device="cuda:0").sum()
assert "cuda:0" in recording.report.text
recording.trace.save("a.devtrace")
recording.report.to_html("a.html")
assert main(["report", "a.devtrace", "--json", "a.json", "--sarif", "a.sarif"]) == 0
"""


def test_what_a_notebook_needs_is_asked_for_in_a_notebook_only(tmp_path: Path) -> None:
    (tmp_path / "light.py").write_text(WITHOUT)
    done = subprocess.run([sys.executable, "light.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} >= {"a.json", "a.sarif", "a.html"}
