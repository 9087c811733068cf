"""Kernels of a notebook's rounds are forks of one Python: nothing else about a run is another for that."""

from __future__ import annotations

import json
import os
import re
import select
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from devtrace.diagnosis.findings import Finding
from devtrace.fixing.notebooks.forks import IS_POSSIBLE, Forks
from devtrace.fixing.notebooks.runner import NotebookRunner
from devtrace.words.errors import DevtraceError

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="forks are for Linux")

CELLS = (
    "import os, sys\nimport torch\nfrom helpers import scaled\nos.environ['SEEN'] = 'in this run'",
    "net = torch.nn.Linear(4, 4).to('cuda')\nsteps = torch.optim.SGD(net.parameters(), lr=0.1)",
    "rows = torch.rand(2, 4)",
    "print(sys.argv[0], os.getcwd(), 'SEEN' in os.environ, __name__, torch.initial_seed(), hash('a word'))",
    "scaled(net(rows))",
)


@pytest.fixture
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.close()


@pytest.fixture
def notebook(tmp_path: Path) -> str:
    (tmp_path / "helpers.py").write_text("def scaled(x):\n    return 2 * x\n")
    rest: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**rest, "id": f"c{at}", "source": source} for at, source in enumerate(CELLS)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}))
    return str(path)


def test_a_run_in_a_fork_finds_prints_and_leaves_what_one_in_a_kernel_of_its_own_does(
    forks: Forks, notebook: str
) -> None:
    apart = NotebookRunner(notebook, "cuda:1").run({})
    runner = NotebookRunner(notebook, "cuda:1", forks=forks)
    first, second = runner.run({}), runner.run({})
    assert [found.rule for found in apart.findings if found.severity == "error"] == ["device-mismatch"]
    for run in (first, second):
        assert (run.ending, run.raised, run.lines) == (apart.ending, apart.raised, apart.lines)
        assert (run.values, run.crossings) == (apart.values, apart.crossings)
        assert without_ids(run.findings) == without_ids(apart.findings)
        assert run.output.split()[1:] == apart.output.split()[1:]


def without_ids(findings: tuple[Finding, ...]) -> str:
    """Return findings without the process id that is in the name of a cell's code."""
    return re.sub(r"ipykernel_\d+", "", repr(findings))


def test_a_kernel_ends_with_the_python_that_it_is_a_fork_of(forks: Forks, tmp_path: Path) -> None:
    fork = forks.begin(["ipykernel_launcher", "-f", str(tmp_path / "kernel.json")], str(tmp_path), {**os.environ})
    assert fork is not None
    assert fork.poll() is None
    end = os.pidfd_open(fork.pid)  # while it is there: afterwards its number is nobody's
    forks.close()
    select.select([end], [], [])
    os.close(end)
    assert fork.poll() is not None


def test_a_kernel_starts_as_ever_where_no_python_forks(forks: Forks, notebook: str) -> None:
    forks.close()
    assert NotebookRunner(notebook, "cuda:1", forks=forks).run({}).ending == "raised"


def test_a_run_that_is_closed_while_its_kernel_starts_never_begins(forks: Forks, notebook: str) -> None:
    path = Path(notebook)
    path.write_bytes(path.read_bytes().replace(b"import os, sys", b"import os, sys; open('began', 'w')"))
    kernel = NotebookRunner(notebook, "cuda:1", forks=forks).begin({})
    kernel.close()
    forks.close()
    with pytest.raises(DevtraceError, match="kernel"):
        kernel.result()
    for thread in [each for each in threading.enumerate() if each.name == "devtrace-kernel"]:
        thread.join()
    assert not path.with_name("began").exists()


def test_whether_a_fork_is_there_may_be_asked_in_two_threads_at_once(forks: Forks, tmp_path: Path) -> None:
    fork = forks.begin(["ipykernel_launcher", "-f", str(tmp_path / "kernel.json")], str(tmp_path), {**os.environ})
    assert fork is not None
    with ThreadPoolExecutor(4) as pool:
        assert {*pool.map(lambda _: fork.poll(), range(20_000))} == {None}


def test_what_its_imports_print_is_no_answer_of_the_python_that_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hello')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    forks = Forks()
    fork = forks.begin(["ipykernel_launcher", "-f", str(tmp_path / "kernel.json")], str(tmp_path), {**os.environ})
    forks.close()
    assert fork is not None
