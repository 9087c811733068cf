"""`%%px` of ipyparallel: a cell traced on every engine, each engine's trace in a file of its own, read as one."""

from __future__ import annotations

from pathlib import Path

import pytest

import devtrace
import needs
from devtrace.api.results import diagnose
from shells import new_shell
from warm import LIMIT

pytestmark = pytest.mark.slow


def test_a_cell_traced_on_two_engines_is_saved_by_each_and_the_report_names_the_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ipyparallel = needs.imported("ipyparallel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    with new_shell() as shell, ipyparallel.Cluster(n=2, log_level=40, engine_timeout=LIMIT) as engines:
        view = engines[:]
        view.block = True
        view.activate()
        view.scatter("failing", [False, True], flatten=True)
        shell.run("%%px", "%load_ext devtrace")
        ran = shell.run(
            "%%px",
            "%%devtrace step --simulate cuda:1 --save run.devtrace",
            "import torch",
            "x = torch.ones(3, device='cuda:0')",
            "mask = torch.ones(3, device='cpu' if failing else 'cuda:0')",
            "x * mask",
        )
    assert ran.error is not None
    assert sorted(data["text/plain"][0] for data in ran.reports) == ["✓", "✗"]
    files = sorted(tmp_path.glob("*.devtrace"))
    assert [file.name for file in files] == ["run.rank0.devtrace", "run.rank1.devtrace"]
    report = diagnose(devtrace.load(*files))
    assert {op.thread.rank for op in report.trace.ops} == {0, 1}
    [finding] = [finding for finding in report.findings if finding.severity == "error"]
    assert finding.message.startswith("On rank 1: `mask` is on cpu")
    assert report.trace.ops[finding.op].thread.rank == 1
