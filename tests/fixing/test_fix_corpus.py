"""`devtrace fix` over the corpus: each program runs to its end, and returns what its author's fix does on the CPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from corpus_programs import FAILING, one_a_cause
from devtrace.fixing.command import reasons
from devtrace.fixing.patch import unified_diff
from devtrace.fixing.rounds import Rounds
from devtrace.fixing.source_text import SourceText
from fix_rounds import fixed, outcome
from programs import Program
from warm import Warm

pytestmark = pytest.mark.slow


@one_a_cause(FAILING)
def test_a_program_is_fixed_and_returns_what_its_authors_fix_returns_on_the_cpu(
    program: Program, warm: Warm, tmp_path: Path
) -> None:
    rounds, value = fixed(warm, program)
    assert (rounds.is_proven, rounds.last.ending, rounds.last.raised) == (True, "ended", "")
    assert rounds.compared is not None
    assert rounds.compared.is_proof, rounds.compared
    assert_git_applies(rounds, program.folder, tmp_path / "ours")
    on_cpu = Program(program.with_fix(tmp_path / "authors").path, tuple(map(as_cpu, program.arguments)), simulate="")
    assert value == outcome(warm, on_cpu, {}).value


def assert_git_applies(rounds: Rounds, folder: Path, copy: Path) -> None:
    """Apply the patch to a copy of the program, and compare byte by byte."""
    before = {file: SourceText(file, Path(file).read_bytes()) for file in rounds.texts}
    patch = unified_diff(before, rounds.texts, reasons(rounds), str(folder))
    shutil.copytree(folder, copy)
    subprocess.run(["git", "apply", "-"], cwd=copy, check=True, input=patch)
    for file, text in rounds.texts.items():
        changed = (copy / Path(file).relative_to(folder)).read_bytes()
        assert changed == text.data != before[file].data


def as_cpu(argument: str) -> str:
    return "cpu" if argument.startswith("cuda") else argument
