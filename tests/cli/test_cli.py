"""`devtrace` in processes of their own: a program does what it does under Python, and the report comes after.

How a process starts and ends is seen in a Python of its own (`run`, `both`), what is told and written in `warm` forks.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devtrace.cli.main import main
from devtrace.jobs.merge import with_rank
from devtrace.trace import format
from devtrace.trace.format import load
from samples import training
from warm import JOB, LIMIT, Warm

pytestmark = pytest.mark.slow

DEVTRACE = [sys.executable, "-m", "devtrace", "run"]
TRAIN = """
import torch
model = torch.nn.Linear(8, 2).to("cuda")
for step in range(3):
    model(torch.randn(4, 8).to("cuda")).sum().backward()
print("done")
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in a folder of its own, and outside of any job."""
    monkeypatch.chdir(tmp_path)
    for name in JOB:
        monkeypatch.delenv(name, raising=False)


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def run(*arguments: str, python: bool = False, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments] if python else [*DEVTRACE, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LIMIT, check=False)


def both(name: str, text: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script by Python and by devtrace: same output and code, stderr begins alike. The second is given back."""
    script = write(name, text)
    expected = run(script, *arguments, python=True, stdin=stdin)
    got = run(script, *arguments, stdin=stdin)
    assert (got.stdout, got.returncode) == (expected.stdout, expected.returncode)
    assert got.stderr.startswith(expected.stderr)
    return got


def test_a_script_sees_its_own_argv_main_path_and_stdin() -> None:
    both(
        "look.py",
        """
import os, sys, __main__
print(sys.argv, __name__, __file__, sys.path[0] == os.path.dirname(os.path.realpath(__file__)))
print(__main__.__dict__ is globals(), sys.modules["__main__"] is __main__, __spec__, __package__)
print(sorted(name for name in globals()))
print(type(__loader__).__name__, __doc__, __builtins__.__name__)
print(sys.stdin.read())
""",
        "--simulate", "a b", "-m", "--", "-x",
        stdin="some words",
    )  # fmt: skip


def test_a_module_runs_as_python_runs_it() -> None:
    Path("package").mkdir()
    write("package/__init__.py", "")
    write("package/__main__.py", "import sys; print(sys.argv, __name__, __package__, __spec__.name, sys.path[0])")
    write(
        "package/part.py",
        "import sys\nfrom . import __name__ as parent\nprint(sys.argv, parent)\nraise ValueError('x')",
    )
    for name in ("package", "package.part", "package.missing"):
        expected, got = run("-m", name, "a", python=True), run("-m", name, "a")
        assert (got.stdout, got.returncode) == (expected.stdout, expected.returncode)
    assert "ValueError: x" in run("-m", "package.part").stderr


def test_a_folder_with_a_main_runs() -> None:
    Path("app").mkdir()
    write("app/__main__.py", "import helper, sys; print(helper.x, sys.argv)")
    write("app/helper.py", "x = 3")
    assert run("app", "b").stdout == run("app", "b", python=True).stdout == "3 ['app', 'b']\n"


def test_a_class_of_the_script_can_be_pickled_and_read_by_python_itself() -> None:
    text = """
import pickle, sys
class Point:
    def __init__(self): self.x = 4
if len(sys.argv) > 1:
    pickle.dump(Point(), open("p.pkl", "wb"))
else:
    print(pickle.load(open("p.pkl", "rb")).x, Point.__module__)
"""
    script = write("points.py", text)
    assert run(script, "w").returncode == 0
    assert run(script, python=True).stdout == run(script).stdout == "4 __main__\n"


def test_a_spawned_process_finds_the_script() -> None:
    both(
        "spawn.py",
        """
import multiprocessing as mp
def double(x): return 2 * x
if __name__ == "__main__":
    with mp.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
""",
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("exit-code", "import sys; sys.exit(7)"),
        ("exit-text", "import sys; sys.exit('no')"),
        ("exit-none", "raise SystemExit"),
        ("raises", "def f(): raise KeyError\ntry:\n    f()\nexcept KeyError as e:\n    raise ValueError('b') from e"),
        ("interrupted", "raise KeyboardInterrupt"),
        ("syntax", "x = = 3"),
        ("own-hook", "import sys\nsys.excepthook = lambda *a: print('mine', a[0], file=sys.stderr)\n1 / 0"),
        ("os-exit", "import os; os._exit(5)"),
        ("abort", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
        ("warns", "import warnings; warnings.warn('careful')"),
        ("at-exit", "import atexit; atexit.register(print, 'last'); print('first')"),
    ],
)  # fmt: skip
def test_however_a_script_ends_its_exit_code_and_its_words_are_the_same(name: str, text: str) -> None:
    both(f"{name}.py", text)


def test_the_traceback_of_a_failing_op_is_the_scripts_own() -> None:
    got = both("fails.py", "import torch\nx = torch.ones(2, 3)\nx @ x\n")
    assert "src/devtrace/" not in got.stderr.split("RuntimeError")[0]


def test_the_report_comes_last_on_stderr_and_nothing_on_stdout(warm: Warm, tmp_path: Path) -> None:
    got = warm.devtrace(tmp_path, "run", "--simulate", "cuda:1", write("train.py", TRAIN))
    assert got.stdout == "done\n"
    assert got.returncode == 0
    assert "on cuda:0" in got.stderr


def test_the_report_comes_after_an_exception_too(warm: Warm, tmp_path: Path) -> None:
    got = warm.devtrace(
        tmp_path, "run", "--simulate", "cuda:1", write("train.py", TRAIN + "\nmodel(torch.randn(4, 8))\n")
    )
    assert got.returncode == 1
    before, _, after = got.stderr.partition("RuntimeError: Expected all tensors")
    assert before.startswith("Traceback (most recent call last):\n")
    assert "on cuda:0" in after


def test_the_trace_and_the_page_are_written(tmp_path: Path, warm: Warm) -> None:
    got = warm.devtrace(
        tmp_path, "run", "--simulate", "cuda:2", "--save", "a.devtrace", "--html", "a.html", write("train.py", TRAIN)
    )
    assert "devtrace: the trace is in a.devtrace" in got.stderr
    trace = load(tmp_path / "a.devtrace")
    assert trace.title == "train.py"
    assert {site.file.rsplit("/", 1)[-1] for site in trace.sites if site.caller is None} == {"train.py"}
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert not list(tmp_path.glob("*.part"))


def test_paths_are_from_where_devtrace_was_called_wherever_the_program_goes(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "elsewhere").mkdir()
    script = write("goes.py", "import os, torch\nos.chdir('elsewhere')\ntorch.ones(1)")
    warm.devtrace(tmp_path, "run", "--save", "a.devtrace", "--html", "a.html", script)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.devtrace", "a.html", "elsewhere", "goes.py"]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_what_the_script_sets_before_it_imports_torch_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    text = "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())"
    assert run(write("threads.py", text)).stdout == "1\n"


def test_a_program_without_torch_gets_a_sentence_about_it() -> None:
    got = both("plain.py", "print('hi')")
    assert got.stderr == "devtrace: the program did not import torch, so there is nothing to report\n"


@pytest.mark.parametrize(
    ("words", "flag", "near"),
    [
        (["run", "--budgt", "5%", "train.py"], "devtrace run --budgt", "--budget"),
        (["run", "--simulat=cuda:2", "train.py"], "devtrace run --simulat=cuda:2", "--simulate"),
        (["report", "a.devtrace", "--failon", "error"], "devtrace report --failon", "--fail-on"),
        (["fix", "--round", "3", "train.py"], "devtrace fix --round", "--rounds"),
    ],
)
def test_a_flag_that_is_misspelt_is_answered_with_what_was_probably_meant(
    words: list[str], flag: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"devtrace: unknown-flag: got {flag}; its flags are --")
    assert err.endswith(f"; perhaps {near} was meant.\n")


def test_a_flag_like_no_other_is_answered_with_where_all_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--xyzzy", "train.py"]) == 2
    assert capsys.readouterr().err.endswith("; devtrace run --help explains them.\n")


def test_a_program_that_asks_for_cuda_where_there_is_none_is_led_to_simulated_devices(
    warm: Warm, tmp_path: Path
) -> None:
    got = warm.devtrace(tmp_path, "run", write("train.py", TRAIN), "--lr", "3")
    assert "AssertionError: Torch not compiled with CUDA enabled" in got.stderr
    command = "devtrace run --simulate cuda:1 train.py --lr 3"
    assert got.stderr.endswith(f"To try the program on a simulated one: `{command}`\n")


def test_ops_at_exit_and_in_threads_that_outlive_the_script_are_in_the_trace(tmp_path: Path) -> None:
    text = """
import atexit, threading, torch
go = threading.Event()
def late():
    go.wait()
    torch.full((3,), 1.5)
threading.Thread(target=late).start()
atexit.register(lambda: torch.eye(2))
torch.ones(1)
go.set()
"""
    run("--save", "a.devtrace", write("late.py", text))
    assert {"ones", "full", "eye"} <= {op.name.split(".")[1] for op in load(tmp_path / "a.devtrace").ops}


def test_daemon_threads_that_never_end_do_not_delay_the_report() -> None:
    # Neither computes at the end: Python (3.11) itself aborts now and then when it ends a thread within an op of torch.
    text = """
import threading, torch
begun = threading.Barrier(3)
def waits():
    torch.ones(1)
    begun.wait()
    threading.Event().wait()
def spins():
    torch.zeros(1)
    begun.wait()
    while True: pass
for target in (waits, spins):
    threading.Thread(target=target, daemon=True).start()
begun.wait()
print("over")
"""
    got = run(write("daemon.py", text))
    assert (got.returncode, got.stdout, got.stderr) == (0, "over\n", "\n2 ops on cpu.\n")


def test_a_script_that_forks_is_reported_once_and_its_child_exits_as_it_would(tmp_path: Path) -> None:
    text = """
import os, sys, torch
torch.ones(1)
if os.fork() == 0:
    torch.zeros(1)
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    got = run("--save", "a.devtrace", write("forks.py", text))
    assert got.stdout == "3\n"
    assert got.stderr.count("devtrace: the trace is in") == 1
    assert [op.name for op in load(tmp_path / "a.devtrace").ops] == ["aten.ones"]


WAITS = """
import sys, torch
torch.ones(3)
print("ready", flush=True)
{wait}
"""


def heed_interrupts() -> None:
    """Undo what a shell or nohup does to its jobs in the background: they ignore these, and so would their children."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def started(text: str, *arguments: str) -> subprocess.Popen[str]:
    """A run that has printed "ready"."""
    command = [*DEVTRACE, *arguments, write("waits.py", text)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.one_in(3)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_process_as_it_would_and_the_trace_so_far_is_saved(number: int, tmp_path: Path) -> None:
    process = started(WAITS.format(wait="sys.stdin.read()"), "--save", "a.devtrace")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=LIMIT)
    assert process.returncode == -number
    assert "devtrace: the trace is in a.devtrace" in stderr
    assert [op.name for op in load(tmp_path / "a.devtrace").ops] == ["aten.ones"]


def test_a_second_interrupt_ends_the_report_with_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.devtrace")  # which nobody reads: saving waits for ever
    process = started(WAITS.format(wait="sys.stdin.read()"), "--save", "a.devtrace")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("1 op on cpu" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGINT
    assert "devtrace: interrupted while it reported on the program; what is not named above is not saved\n" in stderr
    assert "Traceback" not in stderr


@pytest.mark.breadth
def test_a_signal_in_the_middle_of_a_print_saves_the_trace_all_the_same(tmp_path: Path) -> None:
    process = started(WAITS.format(wait='print("x" * 2**20, flush=True)'), "--save", "a.devtrace")
    process.terminate()  # while the pipe, which nobody reads, is full
    _, stderr = process.communicate(timeout=LIMIT)
    assert "devtrace: the trace is in a.devtrace" in stderr
    assert [op.name for op in load(tmp_path / "a.devtrace").ops] == ["aten.ones"]


REPORTS = """
import os, signal, sys, torch
torch.ones(3)
class Output:
    def write(self, text): return len(text)
    def flush(self): {signals}
sys.stdout = Output()  # the report begins with what the program printed
"""


def test_a_signal_in_the_middle_of_the_report_lets_it_be_saved_and_ends_the_process_then(tmp_path: Path) -> None:
    got = run("--save", "a.devtrace", write("reports.py", REPORTS.format(signals="os.kill(os.getpid(), 15)")))
    assert got.returncode == -signal.SIGTERM
    assert "devtrace: the trace is in a.devtrace" in got.stderr
    assert [op.name for op in load(tmp_path / "a.devtrace").ops] == ["aten.ones"]


@pytest.mark.breadth
def test_a_second_signal_in_the_middle_of_the_report_ends_the_process_at_once(tmp_path: Path) -> None:
    twice = "[os.kill(os.getpid(), 15) for _ in range(2)]"
    got = run("--save", "a.devtrace", write("reports.py", REPORTS.format(signals=twice)))
    assert got.returncode == -signal.SIGTERM
    assert not (tmp_path / "a.devtrace").exists()


def test_the_trace_is_saved_and_the_process_ends_although_the_main_thread_hangs_where_no_handler_runs(
    tmp_path: Path,
) -> None:
    hang = "import ctypes, threading\nlock = ctypes.create_string_buffer(64)\nlibc = ctypes.CDLL(None)\n"
    hang += "libc.pthread_mutex_init(lock, None)\nlibc.pthread_mutex_lock(lock)\nlibc.pthread_mutex_lock(lock)"
    process = started(WAITS.format(wait=hang), "--save", "a.devtrace")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGTERM
    assert [op.name for op in load(tmp_path / "a.devtrace").ops] == ["aten.ones"]


def test_a_script_with_its_own_handler_keeps_it(tmp_path: Path) -> None:
    text = WAITS.format(wait="sys.stdin.read()").replace(
        "import sys, torch", "import signal, sys, torch\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(9))"
    )
    process = started(text, "--save", "a.devtrace")
    process.terminate()
    process.communicate(timeout=LIMIT)
    assert process.returncode == 9
    assert (tmp_path / "a.devtrace").exists()


def test_a_missing_script_is_one_sentence_and_pythons_own_exit_code() -> None:
    got = run("nowhere.py")
    assert got.returncode == run("nowhere.py", python=True).returncode == 2
    assert re.fullmatch(r"devtrace: script-missing: got 'nowhere\.py', which is not there; .*\n", got.stderr)


@pytest.mark.parametrize(
    "arguments", [[], ["--max-ops", "0", "x.py"], ["--max-ops", "many", "x.py"], ["--sideways", "x.py"], ["-m"]]
)
def test_a_command_that_cannot_be_followed_is_refused(arguments: list[str], warm: Warm, tmp_path: Path) -> None:
    got = warm.devtrace(tmp_path, "run", *arguments)
    assert got.returncode == 2
    assert "Traceback" not in got.stderr
    assert got.stderr.strip()


def test_a_simulation_that_cannot_be_is_one_sentence_before_anything_runs(warm: Warm, tmp_path: Path) -> None:
    got = warm.devtrace(tmp_path, "run", "--simulate", "tpu:9", write("train.py", "print('began')\n" + TRAIN))
    assert (got.returncode, got.stdout) == (2, "")
    assert re.fullmatch("devtrace: simulate-devices: got 'tpu:9'; .*\n", got.stderr)


def test_without_a_command_the_commands_are_listed(warm: Warm, tmp_path: Path) -> None:
    got = warm.devtrace(tmp_path)
    assert (got.returncode, got.stdout) == (2, "")
    assert all(f"\n    {command} " in got.stderr for command in ("run", "view", "check", "diff"))


@pytest.mark.parametrize("flag", ["--save", "--html"])
def test_a_file_in_a_folder_that_is_not_there_is_refused_before_anything_runs(
    flag: str, warm: Warm, tmp_path: Path
) -> None:
    script = write("train.py", "print('began')\n" + TRAIN)
    got = warm.devtrace(tmp_path, "run", flag, "no/such/folder/a.file", script)
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr == (
        f"devtrace: folder-missing: got {flag} no/such/folder/a.file; there is no folder no/such/folder; "
        "make it first: mkdir -p no/such/folder.\n"
    )


@pytest.mark.parametrize("path", ["/dev/full", "/proc/a.devtrace"])
def test_a_trace_that_cannot_be_written_is_put_elsewhere_and_the_exit_code_is_the_scripts(
    path: str, warm: Warm, tmp_path: Path
) -> None:
    got = warm.devtrace(
        tmp_path, "run", "--save", path, write("four.py", "import sys, torch\ntorch.ones(1)\nsys.exit(4)")
    )
    assert got.returncode == 4
    message = re.search(r"devtrace: the trace could not be written to (.*) \((.*)\); it is in (.*) instead", got.stderr)
    assert message is not None
    assert message[1] == path
    spare = Path(message[3])
    assert len(load(spare).ops) == 1
    spare.unlink()
    assert Path("/dev/full").is_char_device()


def test_where_no_file_can_be_written_whole_none_is_left_in_part_and_a_sentence_names_why(tmp_path: Path) -> None:
    script = write("four.py", "import sys, torch\ntorch.ones(1)\nsys.exit(4)")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = " ".join(["ulimit -f 1;", "exec", *DEVTRACE, "--save", "a.devtrace", "--html", "a.html", script])
    got = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"},  # it would be cut off, too
        capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert got.returncode == 4
    assert "the trace could not be written to a.devtrace (File too large); it is lost" in got.stderr
    assert "the report could not be written to a.html (File too large); it is lost" in got.stderr
    assert not [*tmp_path.glob("a.*"), *temporary.iterdir()]


def test_a_closed_stderr_changes_nothing() -> None:
    script = write("quiet.py", "import torch\ntorch.ones(1)\nprint('out')")
    command = " ".join([*DEVTRACE, script, "2>&-"])
    got = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (got.stdout, got.returncode) == ("out\n", 0)


def test_view_writes_a_page_of_a_saved_trace(tmp_path: Path, warm: Warm) -> None:
    warm.devtrace(tmp_path, "run", "--simulate", "cuda:1", "--save", "a.devtrace", write("train.py", TRAIN))
    got = warm.devtrace(tmp_path, "view", "a.devtrace", "--html", "a.html")
    assert "devtrace: the report is in a.html" in got.stdout
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")


def test_view_reads_the_ranks_of_a_job_as_one(tmp_path: Path, warm: Warm) -> None:
    files = [f"run.rank{rank}.devtrace" for rank in range(3)]
    for rank, file in enumerate(files):
        format.save(with_rank(training(), rank), tmp_path / file)
    got = warm.devtrace(tmp_path, "view", *files, "--html", "job.html")
    assert got.returncode == 0, got.stderr
    assert "✗ On all 3 ranks: model.out_head.weight" in got.stdout
    assert "(ranks 0, 1, 2)" in (tmp_path / "job.html").read_text()


def test_view_opens_the_page_in_the_browser(tmp_path: Path) -> None:
    training(2).save(tmp_path / "a.devtrace")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "devtrace", "view", "a.devtrace"]
    environment = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(tmp_path)}
    got = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=True)
    [page] = tmp_path.glob("devtrace-*.html")
    assert f"devtrace: opened {page}\n" in got.stdout
    assert (tmp_path / "opened").read_text() == f"{page.as_uri()}\n"
    assert 'data-devtrace="report"' in page.read_text()


@pytest.mark.parametrize(
    ("name", "text"), [("x.devtrace", "{"), ("profile.json", json.dumps({"traceEvents": []})), ("z", None)]
)
def test_view_refuses_what_is_no_trace_with_one_sentence(
    name: str, text: str | None, warm: Warm, tmp_path: Path
) -> None:
    if text is not None:
        write(name, text)
    got = warm.devtrace(tmp_path, "view", name, "--html", "a.html")
    assert got.returncode == 2
    assert re.match("devtrace: (trace|file)-", got.stderr)
    assert got.stderr.count("\n") == 1


def test_check_lists_torch_its_devices_and_what_would_be_chosen(warm: Warm, tmp_path: Path) -> None:
    text = warm.devtrace(tmp_path, "check").stdout
    labels = [line.split()[0] for line in text.splitlines()]
    assert labels == ["devtrace", "torch", "tested", "real", "simulated", "default", "chosen", "jupyter"]


def test_diff_shows_what_came_and_its_exit_code_whether_it_is_worse(warm: Warm, tmp_path: Path) -> None:
    script = write("train.py", TRAIN)
    warm.devtrace(tmp_path, "run", "--simulate", "cuda:1", "--save", "a.devtrace", script)
    warm.devtrace(
        tmp_path,
        "run",
        "--simulate",
        "cuda:1",
        "--save",
        "b.devtrace",
        write("train.py", TRAIN + "\nmodel(torch.randn(4, 8))\n"),
    )
    codes = []
    for before, after in (("a", "a"), ("a", "b"), ("b", "a")):
        got = warm.devtrace(tmp_path, "diff", f"{before}.devtrace", f"{after}.devtrace")
        codes.append(got.returncode)
        assert ("+ finding" in got.stdout, "- finding" in got.stdout) == (after > before, after < before)
    assert codes == [0, 1, 0]
