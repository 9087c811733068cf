"""`devtrace fix` over the corpus: each program runs to its end, and returns what its author's fix does on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus_programs import FAILING
from corpus_programs import Program as Folder
from devtrace.fixing.patch import unified_diff
from devtrace.fixing.source_text import SourceText
from fix_rounds import Program, fixed, outcome
from warm import Warm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("folder", FAILING, ids=lambda folder: folder.name)
def test_a_program_is_fixed_and_returns_what_its_authors_fix_returns_on_the_cpu(
    folder: Folder, warm: Warm, tmp_path: Path
) -> None:
    program = Program(folder.folder / "bug.py", folder.arguments)
    rounds, value = fixed(warm, program)
    assert (rounds.is_proven, rounds.last.ending, rounds.last.raised) == (True, "ended", "")
    before = {file: SourceText(file, Path(file).read_bytes()) for file in rounds.texts}
    assert unified_diff(before, rounds.texts, {}).count(b"\n@@") >= 1
    on_cpu = Program(folder.with_fix(tmp_path), tuple(map(as_cpu, program.arguments)), simulate="")
    assert value == outcome(warm, on_cpu, {}).value


def as_cpu(argument: str) -> str:
    return "cpu" if argument.startswith("cuda") else argument
