"""`devtrace.install()` and `devtrace run --untraced`: errors explain themselves in a program that nobody traced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devtrace.words.catalogue import templates
from warm import LIMIT, Ended, Warm

pytestmark = pytest.mark.slow

SENTENCE = templates("en")["explained.untraced"]

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.scale = torch.ones(4)

    def forward(self, x):
        return self.body(x) * self.scale

def fails():
    net = Net().to("cuda:0")
    net(torch.rand(3, 4, device="cuda:0"))
"""
INSTALLED = f"import devtrace\ndevtrace.install()\ndevtrace.simulate('cuda:1').start()\n{MODEL}"

PLAIN_LIST = """
import devtrace
devtrace.install()
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [torch.nn.Conv1d(4, 4, 1)]

    def forward(self, x):
        return self.layers[0](x)

with devtrace.simulate("cuda:1"):
    net = Net().to("cuda:0")
    net(torch.rand(3, 4, 2, device="cuda:0"))
"""


def python(folder: Path, text: str) -> Ended:
    """Run a script in a Python of its own, in which torch comes after devtrace or before."""
    (folder / "program.py").write_text(text)
    command = [sys.executable, "program.py"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=folder)
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def forked(warm: Warm, folder: Path, text: str) -> Ended:
    """Run a script where torch is there already."""
    (folder / "program.py").write_text(text)
    return warm.python(folder, "program.py")


def explained(ran: Ended) -> str:
    """Return what stands below the sentence, which stands there once and below the traceback."""
    traceback, sentence, report = ran.stderr.partition(SENTENCE)
    assert "RuntimeError: Expected all tensors" in traceback
    assert sentence
    assert SENTENCE not in report
    return report


def test_a_device_error_that_ends_a_script_is_explained_below_its_traceback(tmp_path: Path) -> None:
    ran = python(tmp_path, f"{INSTALLED}\nfails()")
    assert ran.returncode == 1
    assert ran.stdout == ""
    report = explained(ran)
    assert "`net.scale` is on cpu" in report
    assert "program.py line" in report
    assert "src/devtrace" not in ran.stderr.partition(SENTENCE)[0]


def test_an_error_that_ended_its_simulation_on_the_way_is_explained_as_well(tmp_path: Path) -> None:
    ran = python(tmp_path, PLAIN_LIST)
    traceback, _, report = ran.stderr.partition(SENTENCE)
    assert "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor)" in traceback  # names no index
    assert "`net.layers[0].weight` and `.bias` are on cpu" in report
    assert "cuda:0 + cpu" in report


def test_former_hooks_are_called_first_and_any_other_error_is_theirs_alone(warm: Warm, tmp_path: Path) -> None:
    hook = "import sys\nsys.excepthook = lambda kind, error, traceback: print('mine', file=sys.stderr)\n"
    assert forked(warm, tmp_path, f"{hook}{INSTALLED}\nraise RuntimeError('no device')").stderr == "mine\n"
    ran = forked(warm, tmp_path, f"{hook}{INSTALLED}\nfails()")
    assert ran.stderr.startswith(f"mine\n\n{SENTENCE}\n")


def test_an_error_of_a_thread_and_one_of_a_task_are_explained(warm: Warm, tmp_path: Path) -> None:
    thread = "import threading\nthread = threading.Thread(target=fails)\nthread.start()\nthread.join()"
    assert "`net.scale` is on cpu" in explained(forked(warm, tmp_path, f"{INSTALLED}\n{thread}"))
    task = "import asyncio\nasync def main():\n    asyncio.get_running_loop().call_soon(fails)\n"
    task += "    await asyncio.sleep(0.1)\nasyncio.run(main())"
    assert "`net.scale` is on cpu" in explained(forked(warm, tmp_path, f"{INSTALLED}\n{task}"))


def test_what_is_installed_goes_out_again(tmp_path: Path) -> None:
    program = """
import asyncio, sys, threading
import devtrace
def hooks():
    return [sys.excepthook, threading.excepthook, asyncio.BaseEventLoop.call_exception_handler]
before = hooks()
devtrace.install()
devtrace.install()
import torch
assert hooks() != before
devtrace.uninstall()
assert hooks() == before
assert not torch.nn.modules.module._global_module_registration_hooks
devtrace.uninstall()
"""
    ran = python(tmp_path, program)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_installing_costs_no_import_of_torch(tmp_path: Path) -> None:
    ran = python(
        tmp_path, "import sys, devtrace\ndevtrace.install()\nassert 'torch' not in sys.modules\nraise KeyError"
    )
    assert ran.stderr.endswith("KeyError\n")


def test_in_ipythons_start_up_files_it_loads_the_extension(tmp_path: Path) -> None:
    startup = tmp_path / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "first.py").write_text("import devtrace\ndevtrace.install()\n")
    (tmp_path / "program.py").write_text(MODEL)
    typed = "%devtrace simulate cuda:1\nfrom program import fails\nfails()\n"
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--colors=nocolor", "--ipython-dir", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    ran = subprocess.run(
        command, input=typed, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=tmp_path
    )
    assert "is simulated until" in ran.stdout
    assert "`net.scale` is on cpu" in ran.stdout


def test_run_untraced_explains_the_error_and_changes_nothing_else(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"{MODEL}\nprint('said')\nfails()")
    (tmp_path / "clean.py").write_text("import torch\nprint(torch.ones(1).item())")
    ran = warm.devtrace(tmp_path, "run", "--untraced", "--simulate", "cuda:1", "program.py")
    assert (ran.returncode, ran.stdout) == (1, "said\n")
    assert "`net.scale` is on cpu" in explained(ran)
    clean = warm.devtrace(tmp_path, "run", "--untraced", "clean.py")
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "1.0\n", "")
