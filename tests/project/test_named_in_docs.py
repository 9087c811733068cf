"""Names in backticks in CONTRIBUTING, docs/ and READMEs exist: targets of make, files, names of our code, flags.

What counts: `make golden docs`; `rules/error_rules.py`, the end of a path; `queries.carried`, where `queries` is a
file of ours; `one_in`, an identifier with an underscore or a capital within; `--simulate` in a command of ours. On
pages for users only what begins with a folder of this checkout is a path: `run.devtrace` or `train.py` is theirs.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from documents import PAGES
from folders import ROOT

FOLDERS: Final = tuple(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("src/devtrace/**/README.md")))
FOR_CONTRIBUTORS: Final = ("CONTRIBUTING.md", "docs/recipes.md", "docs/accessibility.md", *FOLDERS)
CODE: Final = (".py", ".ts", ".mjs", ".cpp", ".toml", ".json", ".tsv", ".yml", "Makefile")
BUILT: Final = re.compile(r"build/|\.venv|\.home|tests/e2e/pictures/|notebooks/yours/")
OF_OTHERS: Final = frozenset({"areAnyTensorSubclassLike", "pure_eval", "template"})
"""Identifiers and flags of other packages that no code of ours has."""
NAMES_WHAT_IS_NOT_THERE: Final = "tests/project/test_named_in_docs.py"
COMMAND: Final = re.compile(r"(?:%{0,2}devtrace|pytest --devtrace|--)\b.*|--.*")


@cache
def tracked() -> tuple[str, ...]:
    """Return files of the checkout, those that a commit would take included."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return tuple(subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())


@cache
def ends() -> frozenset[str]:
    """Return all that a file or folder may be named by: ends of its path."""
    paths = {path for file in tracked() for path in (file, *map(str, Path(file).parents))}
    parts = (path.split("/") for path in paths)
    return frozenset("/".join(each[at:]) for each in parts for at in range(len(each)))


@cache
def texts() -> dict[str, str]:
    """Return the text of our code by the name of its file without an ending; of several files one after another."""
    found: defaultdict[str, str] = defaultdict(str)
    for file in tracked():
        if file.endswith(CODE) and (ROOT / file).is_file() and file != NAMES_WHAT_IS_NOT_THERE:
            found[Path(file).stem] += (ROOT / file).read_text(encoding="utf-8", errors="replace")
    return dict(found)


@cache
def words() -> frozenset[str]:
    return frozenset(word for text in texts().values() for word in re.findall(r"\w+", text))


def targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", texts()["Makefile"], re.M))


def unknown(text: str, *, for_users: bool) -> Iterator[str]:
    """Yield what a page names that is not there."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose) + re.findall(r"^ {4}(make .*)", prose, re.M):
        if found := re.fullmatch(r"make((?: [\w=./-]+)+)(?: +#.*)?", span):
            yield from (span for each in found[1].split() if "=" not in each and each not in targets())
        elif COMMAND.fullmatch(span):
            yield from (flag for flag in re.findall(r"(?<!\S)--([a-z][a-z-]+)", span) if not flags(flag))
        elif re.fullmatch(r"[\w.-]*(?:/[\w.<>*-]*)+|[\w.-]+\.(?:py|ts|tsv|cpp|json|toml|txt|md|patch|lock)", span):
            yield from () if path(span, for_users=for_users) else (span,)
        elif not for_users:
            yield from () if name(span) else (span,)


def flags(flag: str) -> bool:
    return flag in OF_OTHERS or any(
        f'"{start}{flag}"' in text for text in texts().values() for start in ("--", "flag.")
    )


def path(span: str, *, for_users: bool) -> bool:
    if BUILT.match(span) or (
        for_users and span.partition("/")[0] not in {each.partition("/")[0] for each in tracked()}
    ):
        return True
    known = re.split(r"[<*]", span)[0]
    return known.strip("/") in ends() or (known != span and known.rpartition("/")[0] in ends())


def name(span: str) -> bool:
    """Return True for a key, an identifier or a name of a file that is in our code, and for what is no name."""
    if any(f'"{span}"' in texts()[file] for file in ("en", "english")):
        return True
    if found := re.fullmatch(r"([a-z_]+)\.(\w+)(?:\(.*\))?", span):
        text = texts().get(found[1])
        return text is None or re.search(rf"\b{found[2]}\b", text) is not None or f"{found[1]}/{found[2]}" in ends()
    found = re.fullmatch(r"(\w*(?:[a-z]_[a-z]|[A-Z]_[A-Z]|[a-z][A-Z])\w*)(?:\(.*\))?", span)
    return found is None or found[1] in words() | OF_OTHERS


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *FOLDERS, *(f"docs/{page}" for page in PAGES)])
def test_names_in_backticks_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [*unknown(text, for_users=page not in FOR_CONTRIBUTORS)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`make golden docs` `make x`", ["make x"]),
        ("    make nothing   # all", ["make nothing   # all"]),
        ("`causes/ordered.py` `causes/unordered.py` `tests/corpus/<cause>/` `tests/crops/<cause>/`", 2),
        ("`sentences.parameters` `sentences.paragraphs` `torch.paragraphs`", ["sentences.paragraphs"]),
        ("`mark_breadth` `mark_length` `widthOfNothing`", ["mark_length", "widthOfNothing"]),
        ("`devtrace run --simulate cuda:1 --simulated a.py` `torchrun --simulated`", ["simulated"]),
        ("```\nmake nothing `a/b`\n```\n`causes/never_moved.py`", []),
    ],
)
def test_a_name_that_is_not_there_is_found(text: str, found: list[str] | int) -> None:
    seen = [*unknown(text, for_users=False)]
    assert found in (seen, len(seen))


def test_a_file_of_a_users_is_not_asked_for() -> None:
    text = "`train.py` `logs/run.json` `tests/no-such/` `no_such_name`"
    assert [*unknown(text, for_users=True)] == ["tests/no-such/"]
