"""Sentences by key: both languages have the same keys and parameters, and the code names those that there are."""

from __future__ import annotations

import ast
import json
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtrace.words import language
from devtrace.words.catalogue import sentence, templates
from devtrace.words.language import Language
from devtrace.words.wrapping import columns, wrap
from folders import ROOT
from sentences import SOURCES, TERMS, parameters
from trees import nodes


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language.CHOICE, "user", None)
    monkeypatch.setattr(language.CHOICE, "front_end", None)
    for name in (language.VARIABLE, *language.LOCALE_VARIABLES):
        monkeypatch.delenv(name, raising=False)


def _calls() -> Iterator[tuple[str, str, set[str] | None]]:
    """Yield each `sentence("key", name=...)`: where it is, its key, its names (None where it passes on a dict)."""
    for path in SOURCES.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sentence":
                names = [keyword.arg for keyword in node.keywords]
                for key in _keys(node.args[0]):
                    where = f"{path.relative_to(SOURCES)}:{node.lineno}"
                    yield where, key, None if None in names else {name for name in names if name}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "family":
                keys = (key.value for key in node.args[1:] if isinstance(key, ast.Constant))
                yield from ((f"{path.name}:{node.lineno}", str(key), None) for key in keys)


def _keys(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from _keys(node.body)
        yield from _keys(node.orelse)


def test_both_languages_have_the_same_sentences_with_the_sameparameters() -> None:
    english, chinese = templates("en"), templates("zh")
    assert list(english) == list(chinese)
    different = {key for key, text in english.items() if parameters(text) != parameters(chinese[key])}
    # Chinese has no plural: where a count only chooses between forms, it may be left out.
    assert {key: parameters(english[key]) ^ parameters(chinese[key]) for key in different} in (
        {key: {"plain" if key == "device-refused.mixed" else "count"} for key in different},
    )


def test_both_files_have_the_same_headings_and_no_key_twice() -> None:
    """Translators read the files side by side; of a key that is there twice JSON would take the last."""
    english, chinese = (_pairs(SOURCES / "words" / f"{of}.json") for of in language.LANGUAGES)
    assert [heading for heading, _ in english] == [heading for heading, _ in chinese]
    for headings in (english, chinese):
        keys = [key for _, sentences in headings for key, _ in sentences]
        assert [key for key, count in Counter(keys).items() if count > 1] == []


def _pairs(file: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the headings of a catalogue, each with its keys and sentences, as they stand in the file."""
    pairs: list[tuple[str, list[tuple[str, str]]]] = json.loads(file.read_text("utf-8"), object_pairs_hook=list)
    return pairs


def test_a_sentence_is_empty_in_both_languages_or_in_none() -> None:
    assert [key for key, text in templates("en").items() if bool(text) != bool(templates("zh")[key])] == []


def test_every_sentence_that_the_code_asks_for_exists_and_gets_exactly_itsparameters() -> None:
    wrong = []
    for where, key, names in _calls():
        if key not in templates("en"):
            wrong.append(f"{where}: there is no sentence {key!r}")
        elif names is not None and names != parameters(templates("en")[key]):
            wrong.append(f"{where}: {key!r} takes {parameters(templates('en')[key])}, got {names}")
    assert wrong == []


def test_every_sentence_is_asked_for_by_a_key_that_a_search_finds() -> None:
    """`f"copy.{direction}"` hides three keys from a search, and a key that nobody asks for is dead."""
    files = [*SOURCES.rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    constants = (node for path in files for node in nodes(path) if isinstance(node, ast.Constant))
    texts = (node.value for node in constants if isinstance(node.value, str))
    asked = {text.partition("\t")[0] for text in texts}  # a note is its key, a tab and its values
    errors = asked | {text.partition(".")[0] for text in asked}
    assert [
        key
        for key in templates("en")
        if key.removeprefix("dtype:") not in asked
        and not (key.endswith((".got", ".expected", ".do")) and key.rpartition(".")[0] in errors)
    ] == []


def test_no_key_is_put_together_where_it_is_asked_for() -> None:
    """An error is asked for by its slug, and `DevtraceError.of` adds the part."""
    calls = [
        (path, node)
        for path in SOURCES.rglob("*.py")
        if path.name != "errors.py"
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("sentence", "family")
    ]
    built = (ast.JoinedStr, ast.BinOp)
    assert [
        f"{path}: {ast.unparse(node)}"
        for path, node in calls
        if any(isinstance(key, built) for given in node.args for key in (given, *_choices(given)))
    ] == []


def _choices(node: ast.expr) -> tuple[ast.expr, ...]:
    return (node.body, node.orelse) if isinstance(node, ast.IfExp) else ()


def test_a_sentence_in_chinese_has_no_english_but_code_and_names() -> None:
    words = {key: _english_words(text) for key, text in templates("zh").items()}
    assert {key: found for key, found in words.items() if found} == {}


def _english_words(text: str) -> set[str]:
    plain = "".join(part for at, part in enumerate(text.split("`")) if at % 2 == 0)
    plain = "".join(literal for literal, *_ in string.Formatter().parse(plain))
    code = [word for word in plain.split() if any(sign in word for sign in "=.(")]
    letters = "".join(character if character.isascii() and character.isalpha() else " " for character in plain)
    return {word for word in letters.split() if word not in TERMS and not any(word in each for each in code)}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "DEVTRACE_LANGUAGE": "en"}, "en"),
        ({"DEVTRACE_LANGUAGE": "zh"}, "zh"),
        ({"DEVTRACE_LANGUAGE": "fr"}, "en"),
    ],
)
def test_the_language_comes_from_the_environment(
    environment: dict[str, str], expected: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language.current() == expected


def test_the_front_end_comes_before_the_environment_and_the_user_before_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTRACE_LANGUAGE", "en")
    monkeypatch.setattr(language.CHOICE, "front_end", "zh")
    assert language.current() == "zh"
    monkeypatch.setattr(language.CHOICE, "user", "en")
    assert language.current() == "en"


def test_a_parameter_is_written_as_its_format_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sentence("report.count-h2d", count=1) == "1 copy to a device"
    assert sentence("report.count-h2d", count=2000) == "2,000 copies to a device"
    assert sentence("mismatch.inputs", count=1, expected="cuda:0") == "the other input of this op is on cuda:0"
    assert sentence("mismatch.tensor", name="", odd="cpu", rest="r") == "A tensor is on cpu; r."
    assert sentence("copy.number", name="") == "it is a single number, copied in each step."
    for reason in ("Nothing moved it.", "In[4] line 2 moved it.", "PyTorch's own did.", "`Head` is new."):
        after = reason.replace("Nothing", "nothing")
        assert sentence("explained.probably", reason=reason) == f"Probably, by what the source says: {after}"
    monkeypatch.setattr(language.CHOICE, "user", "zh")
    assert sentence("report.count-h2d", count=2000) == "2,000 次复制到设备"
    assert sentence("copy.same", name="") == "它每次都是同一个张量。"


def test_code_stays_whole_where_it_fits_on_a_line_of_its_own() -> None:
    lines = wrap("Nothing moved `model.layers[0].weight + model.bias` to cuda:0.", 40)
    assert lines == ["Nothing moved", "`model.layers[0].weight + model.bias` to", "cuda:0."]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("add `a.to(b)` below line 2 (not tried)", ["add `a.to(b)`", "below line 2", "(not tried)"]),
        ("见 `model.net`（未试运行）", ["见 `model.net`", "（未试运行）"]),
        ("in one (or more) of its (other layers)", ["in one (or more)", "of its (other", "layers)"]),
    ],
)
def test_a_short_remark_in_parentheses_stays_whole(text: str, lines: list[str]) -> None:
    assert wrap(text, 16) == lines


def test_code_longer_than_a_line_is_cut_at_a_space() -> None:
    assert wrap("`aaaa bbbb cccc`", 9) == ["`aaaa", "bbbb", "cccc`"]


def test_chinese_breaks_between_characters_and_no_line_begins_with_a_full_stop() -> None:
    lines = wrap("没有代码把它移动到设备上。它留在原处。", 12)
    assert all(columns(line) <= 14 for line in lines)
    assert "".join(lines) == "没有代码把它移动到设备上。它留在原处。"
    assert not any(line[0] in "，。" for line in lines)
