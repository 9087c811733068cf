"""The plugin, in a pytest of its own, as a project has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warm import LIMIT, Ended, Warm

pytestmark = pytest.mark.slow

PROJECT = """
import pytest, torch
from torch import nn

@pytest.fixture
def model():
    return nn.Linear(4, 2).to("cuda:0")

@pytest.mark.devices(simulate="cuda:2", syncs=0)
def test_clean(model, devtrace):
    x = torch.zeros(3, 4, device="cuda:0")
    model(x)
    devtrace.expect(model, x, device="cuda:0")
    assert torch.cuda.device_count() == 2
    assert devtrace.recording is not None

@pytest.mark.devices(simulate="cuda:2")
def test_mixed(model):
    model(torch.zeros(3, 4))

@pytest.mark.devices(simulate="cuda:1", syncs=0)
def test_syncs(model):
    model(torch.zeros(3, 4, device="cuda:0")).sum().item()

@pytest.mark.devices(simulate="cuda:1", expect="cuda:0")
def test_elsewhere():
    torch.ones(3) * 2

@pytest.mark.devices(simulate="cuda:1", memory="cuda:0 <= 2MB")
@pytest.mark.parametrize("mebibytes", [1, 3])
def test_memory(mebibytes):
    torch.ones(mebibytes << 18, device="cuda:0")

@pytest.mark.devices(simulate="cuda:1,32MB")
@pytest.mark.parametrize("mebibytes", [4, 64])
def test_limit(mebibytes):
    torch.ones(mebibytes << 18, device="cuda:0")

@pytest.mark.devices(simulate="cuda:1", copies=1)
class TestCopies:
    def test_one(self): torch.ones(3).to("cuda")
    def test_two(self): torch.ones(3).to("cuda").cpu()

def test_after(devtrace):
    assert not torch.cuda.is_available()
    assert devtrace.recording is None
    with devtrace.record() as recording:
        torch.ones(2)
    assert len(recording.trace.ops) == 1
"""


FLAGS = ("-p", "devtrace.api.pytest_plugin", "--strict-markers")
VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def pytest_in(folder: Path, text: str, warm: Warm, *arguments: str, **variables: str) -> Ended:
    """Run a project's tests in a fork of a Python that has torch."""
    (folder / "test_project.py").write_text(text)
    return warm.pytest(folder, *FLAGS, *arguments, environment=VARIABLES | variables)


def test_marked_tests_fail_on_what_their_marker_forbids_and_others_are_left_alone(warm: Warm, tmp_path: Path) -> None:
    got = pytest_in(tmp_path, PROJECT, warm, "-q", "-rA")
    outcomes = dict(
        line.split(" - ")[0].split(" test_project.py::")[::-1]
        for line in got.stdout.splitlines()
        if " test_project.py::" in line
    )
    assert outcomes == {
        "test_clean": "PASSED", "test_mixed": "FAILED", "test_syncs": "FAILED", "test_elsewhere": "FAILED",
        "test_memory[1]": "PASSED", "test_memory[3]": "FAILED",
        "test_limit[4]": "PASSED", "test_limit[64]": "FAILED",
        "TestCopies::test_one": "PASSED", "TestCopies::test_two": "FAILED", "test_after": "PASSED",
    }, got.stdout  # fmt: skip
    assert "3.0 MiB on cuda:0 at the peak" in got.stdout
    assert "cuda:0 ran out of memory: this line asked for 64.0 MiB, and 0 B of 32.0 MiB are held." in got.stdout
    assert "devtrace: 1 sync, at most 0 allowed\n  1×  test_project.py line " in got.stdout
    assert "devtrace: 2 copies, at most 1 allowed\n  1×  test_project.py line " in got.stdout
    assert "`torch.ones(3)` is on cpu; all computation was expected on cuda:0." in got.stdout
    assert "Expected all tensors to be on the same device" in got.stdout
    assert "model(torch.zeros(3, 4))" in got.stdout


HELPERS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.scale = torch.ones(2)
    def forward(self, x): return self.head(x) * self.scale
"""


def test_what_a_fixture_attached_and_moved_is_known_to_the_report(warm: Warm, tmp_path: Path) -> None:
    text = f"""import pytest{HELPERS}
@pytest.fixture
def model(): return Net().to("cuda")

@pytest.mark.devices(simulate="cuda:1")
def test_it(model): model(torch.zeros(3, 4, device="cuda"))
"""
    printed = " ".join(pytest_in(tmp_path, text, warm, "-q").stdout.split())
    assert "`model.to()` moves registered parameters and buffers only, and `scale` is a plain attribute." in printed
    assert 'test_project.py line 13 return Net().to("cuda")' in printed
    assert 'self.register_buffer("scale", torch.ones(2), persistent=False)' in printed


def test_a_marker_that_is_not_understood_is_named(warm: Warm, tmp_path: Path) -> None:
    got = pytest_in(tmp_path, "import pytest\n@pytest.mark.devices(sinks=0)\ndef test_a(): pass\n", warm)
    assert "pytest.mark.devices: got sinks; it takes devices(simulate=None" in got.stdout
    assert got.returncode == 1


def test_a_project_that_does_not_use_it_does_not_import_torch(tmp_path: Path) -> None:
    text = "import sys\ndef test_a(): assert not {'torch', 'numpy', 'devtrace.api.recording'} & set(sys.modules)\n"
    (tmp_path / "test_project.py").write_text(text)
    command = [sys.executable, "-m", "pytest", *FLAGS, "-q"]
    assert subprocess.run(command, cwd=tmp_path, env=os.environ | VARIABLES, timeout=LIMIT, check=False).returncode == 0


def test_the_marker_is_listed(warm: Warm, tmp_path: Path) -> None:
    assert (
        "@pytest.mark.devices(simulate=None, expect=None, errors=0" in pytest_in(tmp_path, "", warm, "--markers").stdout
    )


SUITE = """
import pytest, torch
from torch import nn

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")

@pytest.fixture(scope="module")
def model():
    return nn.Linear(4, 2).to("cuda:1")

def test_runs(model): assert model(torch.zeros(3, 4, device="cuda:1")).device.index == 1

def test_mixed(model): model(torch.zeros(3, 4))

class TestCase(__import__("unittest").TestCase):
    def test_unittest(self): torch.ones(2, device="cuda") + torch.ones(2)

def test_expected(model):
    with pytest.raises(RuntimeError): model(torch.zeros(3, 4))

def test_other(model): assert model(torch.zeros(3, 4, device="cuda:1")).numel() == 5

@pytest.mark.devices(simulate="cuda:4")
def test_four(): assert torch.cuda.device_count() == 4

def test_two_again(model): assert torch.cuda.device_count() == 2 and model.weight.device.index == 1
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "pytest-xdist"])
def test_a_whole_suite_runs_on_simulated_devices_and_device_errors_are_explained(
    workers: tuple[str, ...], warm: Warm, tmp_path: Path
) -> None:
    flags = (*workers, "--devtrace=cuda:2", "--devtrace-json=a.json", "--devtrace-sarif=a.sarif")
    ran = pytest_in(tmp_path, SUITE, warm, "-q", "-rA", *flags, GITHUB_ACTIONS="true")
    assert "3 failed, 4 passed" in ran.stdout
    assert ran.stdout.count(" Captured devtrace call ") == 2
    assert "`torch.zeros(3, 4)` is on cpu" in ran.stdout
    written = json.loads((tmp_path / "a.json").read_text())
    assert sorted((finding["test"] for finding in written["findings"]), reverse=True) == [
        "test_project.py::test_mixed",
        "test_project.py::TestCase::test_unittest",
    ]
    lines = [line for line in ran.stdout.splitlines() if line.startswith("::error file=test_project.py,line=")]
    results = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert len(lines) == len(results) == len(written["findings"]) == 2


def test_devices_that_cannot_be_are_one_sentence(warm: Warm, tmp_path: Path) -> None:
    ran = pytest_in(tmp_path, "", warm, "--devtrace=tpu:9")
    assert ran.returncode == 4
    assert "ERROR: simulate-devices: got" in ran.stderr


UNMARKED = """
import devtrace, pytest, torch
from torch import nn

@pytest.fixture
def cuda():
    with devtrace.simulate("cuda:1"):
        yield

@pytest.fixture
def broken(cuda):
    return torch.ones(2, device="cuda") + torch.ones(2)

def test_device(cuda):
    model = nn.Linear(2, 2)
    x = torch.ones(1, 2, device="cuda")
    model(x)

def test_setup(broken): pass

def test_shape(): torch.ones(2) + torch.ones(3)
"""


def test_a_device_error_of_any_test_has_a_section_and_no_other_error_has(warm: Warm, tmp_path: Path) -> None:
    ran = pytest_in(tmp_path, UNMARKED, warm)
    assert (ran.stdout.count(" Captured devtrace call "), ran.stdout.count(" Captured devtrace setup ")) == (1, 1)
    assert "`model.weight` and `.bias` are on cpu" in ran.stdout


def test_the_ini_file_switches_the_section_off(warm: Warm, tmp_path: Path) -> None:
    assert "Captured devtrace" not in pytest_in(tmp_path, UNMARKED, warm, "-o", "devtrace_explain=false").stdout


KEPT = """
import gc, pytest, torch
from devtrace.trace.tables import TraceData

def traces():
    gc.collect()
    return sum(isinstance(each, TraceData) for each in gc.get_objects())

@pytest.mark.parametrize("number", range(3))
def test_each(number, devtrace):
    assert devtrace.recording is not None
    (torch.ones(2).to("cuda:0") + torch.ones(2)) if number == 1 else torch.ones(2)

def test_last():
    assert traces() == 0
"""


def test_the_trace_of_a_test_is_kept_only_until_its_report(warm: Warm, tmp_path: Path) -> None:
    got = pytest_in(tmp_path, KEPT, warm, "-q", "-rA", "--devtrace", "cuda:1")
    assert "1 failed, 3 passed" in got.stdout, got.stdout
    assert "is on cpu" in got.stdout


LIMITS = """
import devtrace, pytest, torch

@pytest.mark.devices(simulate="cuda:1", syncs=0)
def test_waits():
    x = torch.zeros(3, device="cuda:0").cpu().to("cuda:0")
    assert x.sum().item() == 0

def test_expects():
    weight = torch.ones(3)
    devtrace.expect(weight, device="cuda:0")
"""


def test_what_broke_a_limit_is_an_error_for_ci_and_notes_come_on_request(warm: Warm, tmp_path: Path) -> None:
    flags = ("-q", "--devtrace-json=a.json", "--devtrace-sarif=a.sarif")
    ran = pytest_in(tmp_path, LIMITS, warm, *flags, GITHUB_ACTIONS="true")
    shown = [line.partition(" ")[0] for line in ran.stdout.splitlines() if line.startswith("::")]
    levels = [result["level"] for result in json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]]
    findings = json.loads((tmp_path / "a.json").read_text())["findings"]
    assert shown == [f"::{level}" for level in levels]
    assert levels
    assert set(levels) == {"error"}
    broken = [finding for finding in findings if finding["limit"]]
    assert {finding["limit"] for finding in broken} == {"syncs=0"}
    assert findings[: len(broken)] == broken
    assert {finding["test"] for finding in findings} == {"test_project.py::test_waits"}
    assert 'devtrace.expect(weight, device="cuda:0")' in ran.stdout
    assert "raise error.with_tensors" not in ran.stdout


FAILING = """
import os, time, pytest, torch
from helpers import Net

@pytest.fixture
def model(): return Net().to("cuda")

def test_module(model, tmp_path):
    y = model(torch.zeros(3, 4, device="cuda"))
    torch.save(y, tmp_path / "y.pt")
    open("mine.txt", "w").close()

@pytest.mark.parametrize("does", ["assert str(os)", "assert os is None", "os.kill(os.getpid(), 9)", "time.sleep(99)"])
def test_own(does):
    weight = torch.ones(3)
    torch.zeros(3, device="cuda") + weight
    exec(does)
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "pytest-xdist"])
def test_a_failing_test_says_whether_it_passes_with_its_fix_and_no_file_is_touched(
    workers: tuple[str, ...], warm: Warm, tmp_path: Path
) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    chosen = ("-k", "not sleep") if workers else ()
    flags = ("-q", "-p", "no:cacheprovider", "--devtrace=cuda:1", "--devtrace-try", "--devtrace-json=a.json", *chosen)
    ran = pytest_in(tmp_path, FAILING, warm, *flags, *workers)
    tried = [line.partition("Tried")[2].strip() for line in ran.stdout.splitlines() if "  Tried  " in line]
    fails = "with this change the test fails: "
    expected = ["the test passes with this change"] * 2 + [f"{fails}AssertionError", f"{fails}by a signal"]
    assert sorted(tried) == sorted(expected + ([] if workers else [f"{fails}after 10 s it still ran"])), ran.stdout
    grades = {each["edits"][0]["grade"] for each in json.loads((tmp_path / "a.json").read_text())["findings"]}
    assert grades == {"tried"}
    assert {each.name for each in tmp_path.glob("*.*")} == {"a.json", "helpers.py", "test_project.py"}
    assert (tmp_path / "helpers.py").read_text() == HELPERS


@pytest.mark.parametrize(("where", "why"), [("win32", "only on Linux"), ("linux", "cannot use a real device")])
def test_where_no_fork_can_try_a_fix_a_sentence_says_why(where: str, why: str, warm: Warm, tmp_path: Path) -> None:
    away = f"from devtrace.runtime import forks\nforks.CAN_FORK = {where == 'linux'}\n"
    late = "from devtrace.api import environment\nenvironment.running_simulation = lambda: None\n"
    text = "import torch\ndef test_it(): torch.ones(3, device='cuda') + torch.ones(3)\n"
    (tmp_path / "conftest.py").write_text(away + (late if where == "linux" else ""))
    ran = pytest_in(tmp_path, text, warm, "--devtrace=cuda:1", "--devtrace-try")
    assert why in " ".join(ran.stdout.split())
