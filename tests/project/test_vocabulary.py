"""Plain words: names come from the glossary of CONTRIBUTING, docstrings say who does what.

    python tests/project/test_vocabulary.py src/devtrace/recording labextension/src/view      # what is left to reword

A retired word had many meanings (`place` had fourteen), so a reader had to know its author. It may not come back as a
name that we give: of a file, class, function, parameter, field or variable. Names of other people's may hold it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "harness"))  # where this file is run as a program

from trees import nodes  # noqa: E402

SOURCES: Final = (ROOT / "src" / "devtrace", ROOT / "labextension" / "src")
PROGRAMS: Final = {"answers", "corpus", "dtypes", "findings", "jobs", "real", "student", "systems", "zoo"}
TESTS: Final = tuple(path for path in sorted((ROOT / "tests").iterdir()) if path.name not in PROGRAMS)
RETIRED: Final = frozenset({
    "place", "places", "placed", "home", "homes", "told", "tell", "tells", "telling", "untold", "held", "hold", "holds",
    "said", "say", "says", "saying", "spoken", "speak", "met", "meet", "meets", "unmeet", "unmet", "stand", "stands",
    "fellow", "fellows", "errand", "weighty", "lasting", "wish", "wished", "wishes", "grant", "granted", "mend",
    "mends", "mended", "scene", "unseen",
})  # fmt: skip
NO_OPENING: Final = frozenset({
    "What", "Whether", "The", "Of", "Where", "How", "Which", "Who", "Whose", "That", "Those", "There",
})  # fmt: skip
MOST_WORDS: Final = 25
TS_NAMES: Final = re.compile(
    r"\b(?:const|let|var|function|class|interface|type|enum)\s+([A-Za-z_$][\w$]*)"
    r"|^\s*(?:(?:readonly|private|public|protected|static|async|get|set|export|abstract)\s+)*"
    r"([A-Za-z_$][\w$]*)\s*[?!]?\s*[(:=]"
    r"|[(,]\s*([A-Za-z_$][\w$]*)\??:",
    re.M,
)


def complaints(path: Path) -> list[str]:
    """Everything in a file that is not said in plain words, a line each."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ts":
        names = (
            (text.count("\n", 0, match.start()) + 1, next(filter(None, match.groups())))
            for match in TS_NAMES.finditer(text)
        )
        return [*_retired(path, names)]
    return [*_retired(path, _python_names(nodes(path))), *_docstrings(path, nodes(path))]


def _retired(path: Path, names: Iterator[tuple[int, str]]) -> Iterator[str]:
    for line, name in {(0, path.stem): None, **dict.fromkeys(names)}:
        words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
        if bad := words & RETIRED:
            yield f"{path}:{line}: {name} ({', '.join(sorted(bad))} is retired)"


def _python_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Names that the file gives: definitions, parameters, fields and variables."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def _docstrings(path: Path, nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            at = f"{path}:{getattr(node, 'lineno', 1)}"
            first = text.partition(" ")[0]
            if first in NO_OPENING and not isinstance(node, ast.Module):
                yield f"{at}: begins with {first!r}, not with a verb or a noun of the code: {text.splitlines()[0]}"
            for sentence in _sentences(text):
                if (count := len(sentence.split())) > MOST_WORDS:
                    yield f"{at}: a sentence of {count} words, at most {MOST_WORDS}: {sentence[:70]}..."


def _sentences(text: str) -> list[str]:
    """Split a docstring into sentences, without its examples, which are indented."""
    prose = "\n".join("" if line.startswith("    ") else line for line in text.splitlines())
    parts = re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*[-*] )", prose)
    return [" ".join(part.split()) for part in parts if part.strip()]


def files(roots: tuple[Path, ...]) -> list[Path]:
    listed = ([root] if root.suffix == ".py" else sorted([*root.rglob("*.py"), *root.rglob("*.ts")]) for root in roots)
    return [path for found in listed for path in found]


def test_names_and_docstrings_are_in_plain_words() -> None:
    assert [complaint for path in files(SOURCES + TESTS) for complaint in complaints(path)] == []


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("a.py", "def told_of(x): ...", "told is retired"),
        ("a.py", "def f(home): ...", "home is retired"),
        ("a.py", "for each_place in x: ...", "place is retired"),
        ("a.py", "class A:\n    held: int = 0", "held is retired"),
        ("homes.py", "", "homes is retired"),
        ("a.py", "def f():\n    '''What it is.'''", "begins with 'What'"),
        ("a.py", "'''One " + "word " * 25 + "too many.'''", "28 words"),
        ("a.ts", "export function placeOf(x: number) {}", "place is retired"),
        ("a.ts", "  private readonly _held = 1;", "held is retired"),
    ],
)
def test_what_is_not_plain_is_found(tmp_path: Path, file: str, text: str, reason: str) -> None:
    (tmp_path / file).write_text(text)
    assert [reason in complaint for complaint in complaints(tmp_path / file)] == [True]


def test_what_is_plain_passes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        'def replace(path):\n    """Replace it.\n\n    Path.home() is not ours.\n    """\n    return path.home()'
    )
    assert complaints(tmp_path / "a.py") == []


if __name__ == "__main__":
    for found in (complaint for path in files(tuple(map(Path, sys.argv[1:]))) for complaint in complaints(path)):
        sys.stdout.write(f"{found}\n")
