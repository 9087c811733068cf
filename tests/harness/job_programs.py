"""Runs the programs of `jobs/programs/<rule>/<program>/`: each rank in a process of its own, on simulated devices."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path

import torch
import torch.distributed as dist

import devtrace
from devtrace.api.results import Trace, diagnose
from devtrace.jobs.merge import merge, with_rank
from devtrace.report.text import text
from devtrace.words import language
from folders import TESTS
from loaded import loaded
from programs import Outcome, Program
from warm import Warm

LONGEST = 120
"""Seconds after which a rank is ended."""
JOBS = TESTS / "jobs" / "programs"
_IN_TIME = re.compile("failed first|最先失败")
"""Which of two ranks that fail alike is the first is not the program's doing."""


def run_job(warm: Warm, program: Program, of: language.Language = "en") -> Outcome:
    """Return the merged report of all ranks of a job."""
    report = warm.call("job_programs", "report_of", str(program.path), str(program.expected["ranks"]), of)
    assert isinstance(report, Outcome)
    return report


def files_of_job(warm: Warm, path: Path, ranks: int, folder: Path) -> list[str]:
    """Run a job, and return the names of the traces of its ranks in a folder."""
    found: list[str] = warm.call("job_programs", "moved_traces", str(path), str(ranks), str(folder))
    return found


def moved_traces(path: str, ranks: str, folder: str) -> list[str]:
    return [Path(shutil.move(file, folder)).name for file in _traces(path, ranks)]


def report_of(path: str, ranks: str, of: language.Language) -> Outcome:
    language.CHOICE.user = of
    report = devtrace.diagnose(devtrace.load(*_traces(path, ranks)))
    lines = text(report, 100).splitlines()
    return Outcome(text="\n".join(line for line in lines if not _IN_TIME.search(line)), findings=report.findings)


def page_of(path: str, ranks: str, page: str, of_ranks: str = "") -> int:
    """Write the page of the merged report, and return how many ops the job ran.

    Of more ranks than run here, odd ones have the trace of rank 2, even ones that of rank 0.
    """
    traces = [devtrace.load(file) for file in _traces(path, ranks)]
    shown = [traces[rank] if rank < 3 else traces[rank % 2 * 2] for rank in range(int(of_ranks or 0))] or traces
    report = diagnose(Trace.of(merge(with_rank(trace, rank) for rank, trace in enumerate(shown))))
    report.to_html(page)
    return len(report.trace.ops)


def _traces(path: str, ranks: str) -> list[Path]:
    """Run each rank in a fork; none of them has run an op before. A rank may fail, and leaves its trace even then."""
    folder = tempfile.mkdtemp(dir=os.getcwd())
    store = torch._C._distributed_c10d.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    children = []
    for rank in range(int(ranks)):
        child = os.fork()
        if not child:
            _run_rank(rank, int(ranks), store.port, Path(path), folder)
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    traces = sorted(Path(folder).glob("*.devtrace"))
    assert len(traces) == len(children), f"{[trace.name for trace in traces]} of ranks that ended with {ends}"
    return traces


def _run_rank(rank: int, ranks: int, port: int, path: Path, folder: str) -> None:
    """Be a rank, as torchrun starts one, and leave."""
    signal.alarm(LONGEST)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    os.chdir(folder)
    torch.set_num_threads(1)
    with redirect_stderr(StringIO()), suppress(Exception):
        bug = loaded(path, "bug")
        with devtrace.record(f"cuda:{ranks}", name="bug.py", namespace=vars(bug), save="run.devtrace"):
            bug.run()
        dist.destroy_process_group()
    os._exit(0)
