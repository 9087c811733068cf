"""Plain docstrings: they begin with a verb or a noun of the code, and their sentences are short.

python tests/project/test_vocabulary.py src/devtrace/recording      # what is left to reword
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "harness"))  # where this file is run as a program

from trees import nodes  # noqa: E402

PROGRAMS: Final = {"answers", "corpus", "dtypes", "findings", "jobs", "real", "student", "systems", "zoo"}
TESTS: Final = tuple(path for path in sorted((ROOT / "tests").iterdir()) if path.name not in PROGRAMS)
NO_OPENING: Final = frozenset({
    "What", "Whether", "The", "Of", "Where", "How", "Which", "Who", "Whose", "That", "Those", "There",
})  # fmt: skip
MOST_WORDS: Final = 25


def complaints(path: Path) -> Iterator[str]:
    """Yield each docstring of a file that is hard to read, and why."""
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            at = f"{path}:{getattr(node, 'lineno', 1)}"
            yield from (f"{at}: {complaint}" for complaint in _of_text(ast.get_docstring(node) or "", node))


def _of_text(text: str, node: ast.AST) -> Iterator[str]:
    first = text.partition(" ")[0]
    if first in NO_OPENING and not isinstance(node, ast.Module):
        yield f"begins with {first!r}, not with a verb or a noun of the code: {text.splitlines()[0]}"
    for sentence in _sentences(text):
        if (count := len(sentence.split())) > MOST_WORDS:
            yield f"a sentence of {count} words, at most {MOST_WORDS}: {sentence[:70]}..."


def _sentences(text: str) -> list[str]:
    """Split a docstring into sentences, without its examples, which are indented."""
    prose = "\n".join("" if line.startswith("    ") else line for line in text.splitlines())
    parts = re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*[-*] )", prose)
    return [" ".join(part.split()) for part in parts if part.strip()]


def files(*roots: Path) -> list[Path]:
    listed = ([root] if root.suffix == ".py" else sorted(root.rglob("*.py")) for root in roots)
    return [path for found in listed for path in found]


def test_docstrings_are_in_plain_words() -> None:
    assert [each for path in files(ROOT / "src" / "devtrace", *TESTS) for each in complaints(path)] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f():\n    '''What it is.'''", "begins with 'What'"),
        ("if True:\n    class A:\n        def f(self):\n            '''Whose it is.'''", "begins with 'Whose'"),
        ("'''One " + "word " * 25 + "too many.'''", "28 words"),
    ],
)
def test_what_is_not_plain_is_found(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.py").write_text(text)
    assert [reason in complaint for complaint in complaints(tmp_path / "a.py")] == [True]


def test_what_is_plain_passes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('def replace(path):\n    """Replace it.\n\n    Path.home() is not ours.\n    """\n')
    assert list(complaints(tmp_path / "a.py")) == []


if __name__ == "__main__":
    for found in (each for path in files(*map(Path, sys.argv[1:])) for each in complaints(path)):
        sys.stdout.write(f"{found}\n")
