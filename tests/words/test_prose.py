"""The prose of every sentence that a user reads, in both languages, and that none is anywhere but in the catalogues."""

from __future__ import annotations

import ast
import io
import re
import string
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest
import torch

import devtrace
from devtrace.api.environment import describe
from devtrace.api.options import FLAGS
from devtrace.cli.main import main
from devtrace.notebook import usage
from devtrace.report.html import fragment
from devtrace.report.text import text
from devtrace.words import language
from devtrace.words.catalogue import templates
from sentences import CLOSE, OPEN, SOURCES, wrap_all
from trees import nodes

from .test_messages import PROVOKED

RETIRED = (
    "what it meets", "it is none", "nothing to mend", "mend", "mends", "mended", "told", "by itself", "goes on",
    "in all", "is worked out", "of the host's", "passes it by", "which could not see it", "the host",
)  # fmt: skip
MOST_WORDS = 30

every = pytest.mark.parametrize("of", language.LANGUAGES)


def _sentences(template: str) -> list[str]:
    """Return the sentences of a template; code and what is filled in count as one word."""
    plain = re.sub(r"`[^`]*`", "code", template)
    filled = "".join(
        literal + (spec.split("|")[0].lstrip("=") if spec and "|" in spec else "x" if name else "")
        for literal, name, spec, _ in string.Formatter().parse(plain)
    )
    return re.split(r"(?<=[.:;])\s+|\n", filled)


def test_no_sentence_has_a_retired_phrase() -> None:
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, RETIRED))})\b")
    assert {key: found[0] for key, each in templates("en").items() if (found := pattern.search(each))} == {}


def test_a_sentence_is_short() -> None:
    long = {key: each for key, text in templates("en").items() for each in _sentences(text)}
    long = {key: each for key, each in long.items() if len(each.split()) > MOST_WORDS}
    assert long == {}


def test_no_sentence_begins_with_a_small_the() -> None:
    begins = [
        key for key, each in templates("en").items() if each.endswith(".") and re.match(r"the\b|.*\. the\b", each)
    ]
    assert begins == []


@every
def test_a_template_closes_its_code(of: language.Language) -> None:
    assert [key for key, each in templates(of).items() if each.count("`") % 2] == []


USUAL_NAMES = {"torch", "nn", "True", "False", "if", "f", "DistributedDataParallel", "float32", "N", "local_rank"}


@every
def test_no_advice_has_a_name_that_no_program_need_have(of: language.Language) -> None:
    found: dict[str, set[str]] = {}
    for key, each in templates(of).items():
        if key.endswith((".help", ".advice")) or key.startswith("fixed."):
            code = " ".join(re.sub(r"\{[^}]*\}|\"[^\"]*\"", " 0 ", part) for part in re.findall(r"`([^`]+)`", each))
            names = set(re.findall(r"(?<![.\w])([A-Za-z]\w*)(?!\s*[=(\w])", code)) - USUAL_NAMES
            found |= {key: names} if names else {}
    assert found == {}


@pytest.fixture
def pseudo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Speak a third language, which puts every sentence into brackets."""
    wrap_all(monkeypatch.setattr)


def outside(shown: str) -> str:
    """Return what of a text is in no bracket."""
    depth, kept = 0, []
    for character in shown:
        depth += character == OPEN
        if not depth:
            kept.append(character)
        depth -= character == CLOSE
    return "".join(kept)


def words_outside(shown: str) -> list[str]:
    return re.findall(r"[a-z]{2,} [a-z]{2,}", outside(shown))


def test_a_report_without_findings_is_of_the_catalogue(pseudo: None) -> None:
    with devtrace.record() as recording:
        torch.ones(3) + 1
    report = recording.report
    for shown in (text(report), re.sub(r"<[^>]*>", " ", fragment(report, picture=False))):
        assert words_outside(shown) == []


@pytest.mark.parametrize("slug", PROVOKED)
def test_every_sentence_of_an_error_is_of_the_catalogue(
    slug: str, pseudo: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = PROVOKED[slug](monkeypatch)
    assert re.search(rf"{OPEN}{slug}: got {OPEN}.+{CLOSE}; {OPEN}.+{CLOSE}; {OPEN}.+{CLOSE}\.{CLOSE}", shown, re.S)


def test_helps_and_the_environment_are_of_the_catalogue(pseudo: None) -> None:
    lines = re.findall(r"^    .*", usage.help_text(), re.M)
    assert len(lines) == len(usage.COMMANDS) + len(FLAGS)
    assert all(line.endswith(CLOSE) for line in lines)
    assert all(CLOSE in line for line in describe().splitlines())


@pytest.mark.parametrize("command", ["", "run", "fix", "view", "diff", "check"])
def test_the_command_lines_help_is_of_the_catalogue(
    command: str, pseudo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), suppress(SystemExit):
        main([*filter(None, [command]), "--help"])
    left = [line for line in outside(printed.getvalue()).splitlines() if not line.startswith("devtrace")]
    assert words_outside(re.sub(r"--\S+ \S+", "", "\n".join(left))) == []


ELSEWHERE = {
    "__init__.py": ("python-too-old: ",),  # said by a Python that cannot read the catalogues
    "api/pytest_plugin.py": ("run every test ",),  # read at the start of every project's tests
    "explaining/explain.py": ("Caught an error in file",),  # as torch hands on an error as text
    "api/results.py": ("<Trace",),
    "diagnosis/evidence/error_origins.py": ("",),  # torch's words
    "diagnosis/evidence/torchs_sentences.py": ("",),
    "diagnosis/rules/error_rules.py": ("Input type ",),  # torch's words
    "jobs/rules/collective_device.py": ("No backend type ", "Duplicate GPU "),  # torch's and NCCL's words
    "memory/observer.py": ("GPU ", "Tried to ", "Of the allocated "),  # torch's words
    "fixing/patch.py": ("\\ No newline",),  # git's words
    "notebook/live_view.py": ("devtrace.LiveView: ",),
}
"""Files with what only looks like a sentence of ours, and how that begins. `explaining` knows torch's words."""
_SENTENCE = re.compile(r"[A-Z].* [a-z]{2,} [a-z]{2,}|[A-Za-z]{2,} .*[a-z]\.$", re.S)


def test_no_sentence_is_written_in_the_code() -> None:
    assert list(_written_in_code()) == []


def _written_in_code() -> Iterator[tuple[str, str]]:
    """Yield what reads like a sentence outside of the catalogues: two words, and a capital or a full stop."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if name.startswith(("words/", "simulation/", "explaining/")):  # these know torch's own words
            continue
        inner = {id(part) for node in nodes(path) if isinstance(node, ast.JoinedStr) for part in node.values}
        inner |= _documentation(nodes(path))
        for node in nodes(path):
            if id(node) in inner:
                continue
            shown = _literal(node)
            if _SENTENCE.search(shown) and not shown.startswith(ELSEWHERE.get(name, ("no such",))):
                yield name, shown


def _documentation(nodes: Iterable[ast.AST]) -> set[int]:
    bodies = (getattr(node, "body", None) for node in nodes)
    nodes = (each for body in bodies if isinstance(body, list) for each in body)
    return {id(each.value) for each in nodes if isinstance(each, ast.Expr)}


def _literal(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
