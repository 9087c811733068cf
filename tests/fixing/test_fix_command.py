"""`devtrace fix`: rounds of a program, the patch that they end with, and files changed all or none."""

from __future__ import annotations

import errno
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest

from devtrace.cli.main import main
from devtrace.diagnosis.findings import Culprit, Edit, Finding, Grade, Site
from devtrace.fixing import script
from devtrace.fixing.patch import unified_diff, write_all
from devtrace.fixing.program import MOST_OUTPUT
from devtrace.fixing.rounds import ProgramRun, Rounds
from devtrace.fixing.runner import Runner
from devtrace.fixing.source_text import SourceText
from devtrace.words.errors import UsageError
from warm import LIMIT

TWO_BUGS = """import torch

weight = torch.ones(3)
shift = torch.ones(3)
x = torch.zeros(3, device="cuda:0")
x = x * weight
x = x + shift
print("ended", x.sum().item())
"""


def error(file: str, line: int, name: str, *edits: Edit) -> Finding:
    culprit = Culprit(name, (name,), "cpu", (3,), "float32")
    site = Site(file, line, text=f"line {line}")
    return Finding("device-mismatch", "error", "never-moved", ("cuda:0", "cpu"), site, line, culprit, edits=edits)


def replaced(file: str, line: int, before: str, after: str) -> Edit:
    return Edit(file, None, line, before, after)


def text(data: str | bytes) -> SourceText:
    return SourceText("a.py", data if isinstance(data, bytes) else data.encode())


class Scripted:
    """A program whose runs are given."""

    def __init__(self, *runs: ProgramRun) -> None:
        self.left = list(runs)
        self.seen: list[str] = []

    def __call__(self, texts: Mapping[str, SourceText], own: frozenset[str]) -> ProgramRun:
        self.seen.append("".join(texts["a.py"].lines) if "a.py" in texts else "as it is")
        return self.left.pop(0)


ENDED = ProgramRun("ended", ())


def rounds_of(*runs: ProgramRun, most: int = 9) -> tuple[Rounds, Scripted]:
    program = Scripted(*runs)
    rounds = Rounds(program, lambda _: text("x = 1\ny = 2\n"), most)
    rounds.go()
    return rounds, program


def grades(rounds: Rounds) -> list[Grade]:
    return [edit.grade for change in rounds.changes for edit in change.finding.edits]


def test_a_program_is_run_again_with_each_fix_until_it_ends() -> None:
    first = error("a.py", 1, "x", replaced("a.py", 1, "x = 1", "x = 10"))
    second = error("a.py", 2, "y", replaced("a.py", 2, "y = 2", "y = 20"))
    rounds, program = rounds_of(ProgramRun("raised", (first,)), ProgramRun("raised", (second,)), ENDED)
    assert program.seen == ["as it is", "x = 10\ny = 2\n", "x = 10\ny = 20\n"]
    assert rounds.is_proven


def test_a_fix_that_does_not_help_is_taken_back_and_the_one_before_stays() -> None:
    first = error("a.py", 1, "x", replaced("a.py", 1, "x = 1", "x = 10"))
    second = error("a.py", 2, "y", replaced("a.py", 2, "y = 2", "y = 20"))
    rounds, _ = rounds_of(*(ProgramRun("raised", (each,)) for each in (first, second, second)))
    assert "".join(rounds.texts["a.py"].lines) == "x = 10\ny = 2\n"
    assert (rounds.left, rounds.is_proven) == (second, False)
    assert grades(rounds) == ["tried"]


TWINS: Final = "x = 1\nf(x)\nx = 1\nf(x)\n"


def twin(line: int, born: int, *edits: Edit) -> Finding:
    """Return an error in which `f(x)` fails, whose `x` is of another line."""
    found = error("a.py", line, "x", *edits)
    culprit = found.culprit and replace(found.culprit, born=Site("a.py", born))
    return replace(found, site=Site("a.py", line, text="f(x)"), culprit=culprit)


@pytest.mark.parametrize(
    ("edit", "next_error", "is_another"),
    [
        (replaced("a.py", 1, "x = 1", "x = 10"), twin(4, 3), True),
        (replaced("a.py", 1, "x = 1", "x = 1\nx = 10"), twin(5, 4), True),
        (replaced("a.py", 1, "x = 1", "x = 10"), twin(2, 3), True),  # `f` calls itself what both give it
        (replaced("a.py", 1, "x = 1", "x = 10"), twin(2, 1), False),
        (replaced("a.py", 1, "x = 1", "y = 3\nx = 10"), twin(3, 2), False),
        (replaced("a.py", 2, "f(x)", "x = x + 1\nf(x)"), twin(3, 2), False),  # of a line that the fix itself has
    ],
)
def test_a_twin_is_another_error_if_only_its_lines_differ(edit: Edit, next_error: Finding, is_another: bool) -> None:
    last = replace(next_error, edits=(replaced("a.py", 9, "", "no such line"),))
    program = Scripted(ProgramRun("raised", (twin(2, 1, edit),)), ProgramRun("raised", (last,)))
    rounds = Rounds(program, lambda _: text(TWINS))
    rounds.go()
    assert len(rounds.changes) == is_another


@pytest.mark.parametrize(
    "raised", ["NameError: name 'missing' is not defined", "RecursionError: maximum recursion depth exceeded"]
)
def test_a_fix_whose_line_raises_something_else_is_taken_back(raised: str) -> None:
    first = error("a.py", 1, "x", replaced("a.py", 1, "x = 1", "x = missing"))
    broken = ProgramRun("raised", (), raised, (("a.py", None, 1),))
    rounds, _ = rounds_of(ProgramRun("raised", (first,)), broken)
    assert (rounds.texts, rounds.left) == ({}, first)


def test_an_error_of_the_programs_own_later_on_takes_nothing_back() -> None:
    first = error("a.py", 1, "x", replaced("a.py", 1, "x = 1", "x = 10"))
    rounds, _ = rounds_of(ProgramRun("raised", (first,)), ProgramRun("raised", (), "KeyError: 3", (("a.py", None, 2),)))
    assert (len(rounds.changes), rounds.left) == (1, None)


def test_one_round_proves_nothing() -> None:
    rounds, _ = rounds_of(
        ProgramRun("raised", (error("a.py", 1, "x", replaced("a.py", 1, "x = 1", "x = 10")),)), most=1
    )
    assert (grades(rounds), rounds.is_proven) == (["not tried"], False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 1\r\nb = 20\r\n"),
        (b"if a:\n\tpass\nb = 2", b"if a:\n\tpass\nb = 20"),
        (
            "# coding: latin-1\na = 'é'\nb = 2\n".encode("latin-1"),
            "# coding: latin-1\na = 'é'\nb = 20\n".encode("latin-1"),
        ),
        (b"\xef\xbb\xbfa = 1\nb = 2\n", b"\xef\xbb\xbfa = 1\nb = 20\n"),
        ("\x0ca = '\u2028'\nb = 2\n".encode(), "\x0ca = '\u2028'\nb = 20\n".encode()),
    ],
    ids=["CRLF", "tabs, no last line end", "Latin-1", "byte order mark", "form feed, U+2028"],
)
def test_an_edit_keeps_line_ends_tabs_and_encoding(before: bytes, after: bytes, tmp_path: Path) -> None:
    source = text(before)
    line = len(source.lines)
    assert line == before.count(b"\n") + (not before.endswith(b"\n"))
    edited = source.edited([Edit("a.py", None, line, "b = 2", "b = 20")])
    assert edited.data == after
    assert_git_takes(tmp_path, before, edited)


def assert_git_takes(folder: Path, before: bytes, after: SourceText) -> None:
    """Apply the patch with git, and compare byte by byte."""
    file = folder / "a.py"
    file.write_bytes(before)
    here = Path.cwd()
    os.chdir(folder)
    try:
        patch = unified_diff({str(file): text(before)}, {str(file): after}, {})
    finally:
        os.chdir(here)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "apply", "-"], cwd=folder, check=True, input=patch)
    assert file.read_bytes() == after.data


def test_lines_inserted_below_the_last_one_end_it_first() -> None:
    assert text("x = 1").edited([Edit("a.py", None, 1, "", "y = 2")]).data == b"x = 1\ny = 2\n"


def two_files(folder: Path) -> tuple[dict[str, SourceText], dict[str, SourceText]]:
    names = [str(folder / name) for name in ("a.py", "b.py")]
    for name in names:
        Path(name).write_bytes(b"x = 1\n")
    return {name: text("x = 1\n") for name in names}, {name: text("x = 2\n") for name in names}


def changed(path: Path) -> None:
    path.write_bytes(b"x = 3\n")


def linked(path: Path) -> None:
    path.rename(path.with_name("real.py"))
    path.symlink_to("real.py")


@pytest.mark.parametrize("spoil", [changed, linked], ids=["changed meanwhile", "a symbolic link"])
def test_a_file_that_cannot_be_replaced_is_one_sentence_and_nothing_is_written(spoil: object, tmp_path: Path) -> None:
    before, after = two_files(tmp_path)
    assert callable(spoil)
    spoil(tmp_path / "b.py")
    with pytest.raises(UsageError, match="fix-not-written"):
        write_all(before, after)
    assert (tmp_path / "a.py").read_bytes() == b"x = 1\n"


def test_a_read_only_file_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = two_files(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "b.py")  # root may write to any file
    with pytest.raises(UsageError, match=r"b\.py, which is read-only"):
        write_all(before, after)
    assert (tmp_path / "a.py").read_bytes() == b"x = 1\n"


@pytest.mark.parametrize(
    ("module", "name", "at", "fault"),
    [(os, "replace", 1, KeyboardInterrupt()), (shutil, "copymode", 2, OSError(errno.ENOSPC, "No space left", "a.py"))],
)
def test_what_comes_between_two_files_leaves_the_old_ones_and_no_other(
    module: Any, name: str, at: int, fault: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = two_files(tmp_path)
    calls = [getattr(module, name)] * 5
    calls[at] = Mock(side_effect=fault)
    monkeypatch.setattr(module, name, lambda *paths: calls.pop(0)(*paths))
    with pytest.raises((KeyboardInterrupt, UsageError), match=None if at == 1 else "No space left"):
        write_all(before, after)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.py": b"x = 1\n", "b.py": b"x = 1\n"}


ENDLESS = """import os, subprocess
import torch
x = torch.ones(1 << 20, device="cuda:0")
said = open("said", "w")
subprocess.Popen(["sleep", "1000"], stdout=said)
print("begun", file=said, flush=True)
os.wait()
"""


def test_a_run_beyond_its_time_limit_saves_what_was_seen_and_ends_with_what_it_started(folder: Path) -> None:
    Path("a.py").write_text(ENDLESS)
    os.mkfifo("said")
    said = os.open("said", os.O_RDONLY | os.O_NONBLOCK)
    runner = Runner(("a.py",), "cuda:1", timeout=0.0)
    runner.begin({})
    assert select.select([said], [], [], LIMIT)[0]
    run = runner.result()
    runner.close()
    assert (run.ending, set(run.peaks)) == ("time", {"cuda:0"})
    os.set_blocking(said, True)
    assert os.read(said, 99) == b"begun\n"
    assert os.read(said, 99) == b""  # which comes when nobody has it open


def test_of_endless_output_the_beginning_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    printed = script.Printed()
    printed.write(b"x" * (MOST_OUTPUT + 9))
    assert printed.kept == b"x" * MOST_OUTPUT
    assert capfd.readouterr().out == "x" * (MOST_OUTPUT + 9)


def test_a_run_sees_no_real_device_whatever_the_machine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "asks.py"
    script.write_text("import os\n\nimport torch\n\nprint(repr(os.environ['CUDA_VISIBLE_DEVICES']))\ntorch.ones(1)\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    run = Runner((str(script),), "cuda:1").run({})
    assert run.output.splitlines()[0] == "''"


def test_a_patch_that_cannot_be_written_is_refused_before_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(Runner, "run", Mock(side_effect=KeyboardInterrupt))
    assert main(["fix", "--patch", "missing/a.patch", "a.py"]) == 2
    assert "devtrace: not-written" in capfd.readouterr().err


def git_apply(folder: Path, patch: str | bytes) -> None:
    data = patch if isinstance(patch, bytes) else patch.encode()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "apply", "-"], cwd=folder, check=True, input=data)


@pytest.mark.slow
def test_both_bugs_of_a_script_are_fixed_and_git_takes_the_patch(tmp_path: Path) -> None:
    """In processes of their own, as a user runs it."""
    (tmp_path / "train.py").write_text(TWO_BUGS)
    command = [sys.executable, "-m", "devtrace", "fix", "--patch", "train.patch", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert "proven: with the patch, the program ran to its end on 1 simulated device" in done.stderr
    assert (tmp_path / "train.patch").read_text() == done.stdout
    assert (tmp_path / "train.py").read_text() == TWO_BUGS
    git_apply(tmp_path, done.stdout)
    assert (tmp_path / "train.py").read_text() != TWO_BUGS


UNTRAINED = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.rest = [nn.Linear(2, 2)]

    def forward(self, x):
        return self.rest[0](self.first(x))

torch.manual_seed(0)
net = Net().to("cuda:0")
rule = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(1, 2, device="cuda:0")).sum().backward()
    rule.step()
"""


@pytest.mark.breadth
@pytest.mark.slow
def test_of_a_patch_that_changes_values_the_fix_that_does_it_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.py"
    path.write_text(UNTRAINED)
    assert main(["fix", str(path)]) == 0
    shown = capfd.readouterr().err
    assert "keep the layers in a ModuleList, where `.to()` and an optimizer find them" in shown
    assert "tried, not proven" in shown


@pytest.mark.slow
def test_a_program_is_written_once_it_is_proven(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(TWO_BUGS)
    assert main(["fix", "--write", "train.py"]) == 0
    capfd.readouterr()
    assert main(["fix", "train.py"]) == 0
    again = capfd.readouterr()
    assert (again.out, "proven: the program ran to its end" in again.err) == ("", True)


@pytest.mark.slow
def test_a_patch_of_files_outside_of_the_working_directory_names_the_folder_that_takes_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(TWO_BUGS.replace("shift = torch.ones(3)", "from shifts import shift"))
    (project / "shifts.py").write_text("import torch\n\nshift = torch.ones(3)\n")
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    assert main(["fix", str(project / "train.py")]) == 0
    printed = capfd.readouterr()
    assert f"`git apply` takes it in {project}\n" in printed.err
    git_apply(project, printed.out)
    assert main(["fix", str(project / "train.py")]) == 0
    assert capfd.readouterr().out == ""


WRITTEN = {
    "CRLF": TWO_BUGS.replace("\n", "\r\n").encode(),
    "tabs": TWO_BUGS.replace("x = x", "if True:\n\tx = x").encode(),
    "Latin-1": f"# coding: latin-1\nname = 'é'\n{TWO_BUGS}".encode("latin-1"),
    "byte order mark": b"\xef\xbb\xbf" + TWO_BUGS.encode(),
    "no last line end": TWO_BUGS.removesuffix("\n").encode(),
}


@pytest.mark.one_in(5)
@pytest.mark.slow
@pytest.mark.parametrize("data", WRITTEN.values(), ids=WRITTEN)
def test_a_file_keeps_its_bytes_where_nothing_is_fixed_as_written_and_as_git_applies_it(
    data: bytes, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_bytes(data)
    assert main(["fix", "--write", "--patch", "train.patch", "train.py"]) == 0
    written = (folder / "train.py").read_bytes()
    old, new = data.split(b"\n"), written.split(b"\n")
    assert len([line for line in old if line not in new]) == 2
    assert {line.endswith(b"\r") for line in new[:-1]} == {line.endswith(b"\r") for line in old[:-1]}
    (folder / "train.py").write_bytes(data)
    git_apply(folder, (folder / "train.patch").read_bytes())
    assert (folder / "train.py").read_bytes() == written
    assert "written: train.py" in capfd.readouterr().err


@pytest.mark.slow
def test_what_one_round_changed_is_shown_and_not_written(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(TWO_BUGS)
    assert main(["fix", "--rounds", "1", "--write", "train.py"]) == 1
    printed = capfd.readouterr()
    assert "not proven: the last fix was not run" in printed.err
    assert "nothing was written" in printed.err
    assert "+" in printed.out
    assert (folder / "train.py").read_text() == TWO_BUGS


@pytest.mark.slow
def test_rounds_print_no_traceback_of_an_error_that_is_fixed_and_that_of_any_other(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text(TWO_BUGS + 'print({}["best"])\n')
    assert main(["fix", "train.py"]) == 1
    printed = capfd.readouterr().err
    runs = [line.removeprefix("devtrace: ") for line in printed.splitlines() if line.startswith("devtrace: run ")]
    assert runs == ["run 1", "run 2, with a fix for train.py line 6", "run 3, with a fix for train.py line 7"]
    assert [line for line in printed.splitlines() if "Error" in line] == [
        "KeyError: 'best'",
        "devtrace: no device error is left in what ran on 1 simulated device, but the program ended early: KeyError: "
        "'best' (train.py line 9). What comes after that was not run, and may have device errors",
    ]
    assert printed.count("Traceback") == 1


PACKAGE = """import torch

def shifted(x):
    table = torch.ones(3)
    return x + table
"""
CALLER = """import sys
sys.path.insert(0, "site-packages")
import torch
from offsets import shifted

weight = torch.ones(3)
x = shifted(torch.zeros(3, device="cuda:0"))
print((x * weight).sum())
"""


@pytest.mark.slow
def test_a_line_of_a_package_is_patched_apart_and_the_error_behind_it_is_found(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    packages = folder / "site-packages"
    (packages / "offsets-1.2.dist-info").mkdir(parents=True)
    (packages / "offsets-1.2.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: offsets\nVersion: 1.2\n")
    (packages / "offsets.py").write_text(PACKAGE)
    (folder / "train.py").write_text(CALLER)
    assert main(["fix", "--write", "train.py"]) == 1
    printed = capfd.readouterr()
    assert "not done: as offsets 1.2 is installed, your program still fails" in printed.err
    assert "--- a/train.py" in printed.out
    assert "offsets.py" not in printed.out
    _, _, apart = printed.err.partition("for offsets 1.2, an installed package that `--write` leaves alone")
    assert apart
    assert (packages / "offsets.py").read_text() == PACKAGE
    git_apply(packages, apart.partition("\n")[2].partition("devtrace: ")[0])
    assert "device=x.device" in (packages / "offsets.py").read_text()
    assert main(["fix", "train.py"]) == 0
    assert capfd.readouterr().out == ""


def test_a_time_limit_is_named_and_what_was_seen_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    first = error(str(tmp_path / "a.py"), 1, "x", replaced(str(tmp_path / "a.py"), 1, "x = 1", "x = 10"))
    runs = iter((ProgramRun("raised", (first,)), ProgramRun("time", ())))
    monkeypatch.setattr(Runner, "run", lambda *_: next(runs))
    assert main(["fix", "--timeout", "20", "a.py"]) == 0
    printed = capfd.readouterr()
    assert "seen until the time limit of 20 s on 1 simulated device" in printed.err
    assert "+x = 10" in printed.out


@pytest.mark.parametrize("arguments", [(), ("-m",), ("missing.py",), ("--rounds", "none", "a.py")])
def test_what_cannot_run_is_one_sentence_and_exit_code_2(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fix", *arguments]) == 2
    assert capsys.readouterr().err.startswith("devtrace: ")
