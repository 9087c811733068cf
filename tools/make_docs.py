"""Tables and examples of docs/, from the code and the corpus, and the pages that `devtrace explain RULE` prints.

python tools/make_docs.py       writes them anew: between their markers, and src/devtrace/explaining/pages.json
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill, indent
from typing import Any, Final, NamedTuple, get_args

import devtrace
from devtrace.api.options import FLAGS, Keyword
from devtrace.diagnosis.rules.error_rules import rule_slugs
from devtrace.diagnosis.slugs import MEANINGS, CauseSlug, RuleSlug
from devtrace.notebook.usage import COMMANDS
from devtrace.words import language
from devtrace.words.catalogue import family, sentence
from devtrace.words.language import LANGUAGES, Language

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
TESTS: Final = ROOT / "tests"
PRINTED: Final = ROOT / "src" / "devtrace" / "explaining" / "pages.json"
CORPUS: Final = TESTS / "corpus"
DTYPES: Final = TESTS / "dtypes" / "programs"
COSTS: Final[dict[RuleSlug, str]] = {
    "host-sync": "progress_line",
    "host-to-device-copy": "full_batch",
    "device-to-host-copy": "augment_host",
}
"""Of the rules for what costs time, a short program that each finds something in."""
ERRORS: Final[dict[str, Path]] = {
    "device-mismatch": CORPUS / "not-registered" / "action_bounds",
    "dtype-mismatch": DTYPES / "never-cast" / "second_input",
    "host-conversion": CORPUS / "host-boundary" / "score_table",
    "generator-mismatch": CORPUS / "generator-device" / "reproducible_noise",
}
"""Of the errors that have causes, a short program; where there are two, another one than the example of its cause."""
HELPS: Final = family(
    "*.helps", "attached-after-move.helps", "not-registered.helps", "created-without-device.helps",
    "never-moved.helps", "stale-copy.helps", "wrong-device.helps", "host-boundary.helps", "generator-device.helps",
    "default-device.helps", "asked-at-rest.helps", "attached-after-cast.helps", "created-without-dtype.helps",
    "never-cast.helps", "wrong-dtype.helps", "numpy-boundary.helps", "autocast-off.helps", "python-number.helps",
    "target-dtype.helps", "unknown.helps",
)  # fmt: skip


RULES: Final = tuple(slug for slug in get_args(RuleSlug) if slug in rule_slugs())
CAUSES: Final = get_args(CauseSlug)
COSTLY: Final[dict[str, Path]] = {rule: CORPUS / "costs" / name for rule, name in COSTS.items()}
OWN_WORDS: Final[dict[Language, dict[str, str]]] = {
    "en": {
        "rule": "rule", "cause": "cause", "meaning": "it means", "helps": "what helps", ".": ". ", ":": ": ",
        "✗": "an error", "!": "a warning", "i": "a note",
        "silence": "To hide this finding on one line, end the line with ",
    },
    "zh": {
        "rule": "规则", "cause": "原因", "meaning": "含义", "helps": "解决办法", ".": "。", ":": "：",
        "✗": "错误", "!": "警告", "i": "提示",
        "silence": "如果是有意为之，在该行末尾写上 ",
    },
}  # fmt: skip
"""What the pages say beside the catalogue's sentences; full stops and colons have the space that follows them."""


class Entry(NamedTuple):
    """What there is to read of a rule or a cause."""

    slug: str
    program: str
    report: str

    def markdown(self) -> str:
        code = f"```python\n{self.program}\n```\n\n```text\n{self.report}\n```\n"
        return f"\n## {self.slug}\n\n{self._said()}\n\n{code}"

    def plain(self) -> str:
        """Return it as a terminal shows it."""
        own = OWN_WORDS[language.current()]
        is_silenced = self.slug not in HELPS and self._sign() != "✗"
        silence = f"\n\n{own['silence']}`# devtrace: ignore[{self.slug}]`{own['.']}".rstrip() if is_silenced else ""
        code, report = (indent(text, "    ", lambda line: bool(line.strip())) for text in (self.program, self.report))
        return f"{self.slug}\n\n{self._said()}\n\n{code}\n\n{report}{silence}"

    def _said(self) -> str:
        own, meaning = OWN_WORDS[language.current()], sentence(MEANINGS[self.slug])
        if self.slug not in HELPS:
            return f"{_capital(own[self._sign()])}{own['.']}{_capital(meaning)}{own['.']}".strip()
        helps = f"{own['helps']}{own[':']}{sentence(HELPS[self.slug])}{own['.']}"
        return f"{_capital(meaning)}{own['.']}{_capital(helps)}".strip()

    def _sign(self) -> str:
        """Return the sign of the report's first finding, which says how bad it is."""
        return next(line[0] for line in self.report.splitlines() if line[:2] in ("✗ ", "! ", "i "))


def entry_of(slug: RuleSlug | CauseSlug) -> Entry:
    """Return the entry of a rule or a cause, with the report of its example as a reader of the language sees it."""
    program = TESTS / "findings" / f"{slug}.py"
    report = program.with_suffix(f".{language.current()}.txt")
    if not program.exists():
        folder = ERRORS.get(slug) or COSTLY.get(slug) or _shortest(slug)
        program = folder / "bug.py"
        report = folder / ("report.txt" if language.current() == "en" else "report.zh.txt")
    return Entry(slug, program.read_text(encoding="utf-8").strip(), report.read_text(encoding="utf-8").strip())


def _shortest(cause: str) -> Path:
    folder = CORPUS / cause if (CORPUS / cause).is_dir() else DTYPES / cause
    return min(folder.iterdir(), key=lambda folder: (len((folder / "bug.py").read_text()), folder.name))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def rules() -> str:
    own = OWN_WORDS[language.current()]
    rows = [(f"[`{slug}`](#{slug})", sentence(MEANINGS[slug])) for slug in RULES]
    return _table((own["rule"], own["meaning"]), *rows)


def causes() -> str:
    own = OWN_WORDS[language.current()]
    rows = [(f"[`{slug}`](#{slug})", sentence(MEANINGS[slug]), sentence(HELPS[slug])) for slug in CAUSES]
    return _table((own["cause"], own["meaning"], own["helps"]), *rows)


def examples(slugs: tuple[RuleSlug | CauseSlug, ...]) -> str:
    return "".join(entry_of(slug).markdown() for slug in slugs) + "\n"


def printed() -> dict[str, dict[str, str]]:
    """Return what `devtrace explain RULE` prints, by language and slug."""
    found: dict[str, dict[str, str]] = {}
    for each in LANGUAGES:
        with spoken(each):
            found[each] = {slug: entry_of(slug).plain() for slug in (*RULES, *CAUSES)}
    return found


@contextmanager
def spoken(each: Language) -> Iterator[None]:
    before, language.CHOICE.user = language.CHOICE.user, each
    try:
        yield
    finally:
        language.CHOICE.user = before


def flags() -> str:
    return _table(("flag of `%%devtrace`", "what it does"), *(_row("", flag) for flag in FLAGS))


def commands() -> str:
    return _table(("command", "what it does"), *(_row("%devtrace ", command) for command in COMMANDS))


def _row(before: str, keyword: Keyword) -> tuple[str, str]:
    return f"`{before}{keyword}`".replace("|", "\\|"), keyword.help


def _table(head: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    lines = [f"| {' | '.join(row)} |\n" for row in (head, *rows)]
    return "".join((lines[0], f"|{'---|' * len(head)}\n", *lines[1:]))


WITH_METHODS: Final = ("Trace", "Report")


def reference(name: str) -> str:
    """Give signature and docstring of a public name, as the code has them."""
    found = getattr(devtrace, name)
    said = inspect.cleandoc(found.__doc__ or "")
    lines = "\n".join(map(_wrapped, _signature(name, found).splitlines()))
    text = f"```text\n{lines}\n```\n\n{_as_markdown(said)}\n"
    return text + "".join(map(_method, _methods(found) if name in WITH_METHODS else ()))


def _methods(found: Any) -> list[Any]:
    own = [each for kind in found.__mro__ if kind.__module__.startswith("devtrace") for each in vars(kind).values()]
    return [each for each in own if inspect.isfunction(each) and not each.__name__.startswith("_") and each.__doc__]


def _method(method: Any) -> str:
    return f"\n- `{_signature(f'.{method.__name__}', method)}`: {inspect.cleandoc(method.__doc__).splitlines()[0]}"


def _signature(name: str, found: Any) -> str:
    dotted = name if name.startswith(".") else f"devtrace.{name}"
    if inspect.isclass(found) and issubclass(found, BaseException):
        return f"class {dotted}"
    overloads = typing.get_overloads(found)
    shown = [_MODULES.sub("", str(inspect.signature(each))) for each in overloads or [found]]
    return "\n".join(
        re.sub(r"\(self(?:, )?", "(", f"{dotted}{_quoted(each)}").replace("'", "").removesuffix(" -> None")
        for each in shown
    )


def _quoted(signature: str) -> str:
    """Write defaults that are text in double quotes; single ones are around names of types."""
    return re.sub(r"= '([^']*)'", r'= "\1"', signature).replace("''", '""')


_MODULES: Final = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")


def _wrapped(signature: str) -> str:
    """Break a long signature between its parameters alone."""
    glued = re.sub(r" (?=[|=]|\w+\")|(?<=[|=:]) |(?<=->) |(?<=,) (?=[^\[]*\])", "\0", signature)
    return fill(glued, 100, subsequent_indent="    ", break_long_words=False).replace("\0", " ")


def _as_markdown(said: str) -> str:
    """Keep a docstring's examples, which are indented, apart from its words."""
    return re.sub(r"\n{3,}", "\n\n", said)


PARTS: Final[dict[str, Callable[[], str]]] = {
    "rules": rules,
    "causes": causes,
    "flags": flags,
    "commands": commands,
    "rule_examples": lambda: examples(RULES),
    "cause_examples": lambda: examples(CAUSES),
}
_PART: Final = re.compile(r"(<!-- (\w+): tools/make_docs\.py -->\n).*?(<!-- end of \2 -->)", re.S)


def made_anew(text: str) -> str:
    """Return a document with every part between markers made anew."""
    return _PART.sub(lambda match: match[1] + _made(match[2]) + match[3], text)


def _made(part: str) -> str:
    """Make a part; one of a Chinese page ends in `_zh`."""
    with spoken("zh" if part.endswith("_zh") else "en"):
        name = part.removesuffix("_zh")
        return PARTS[name]() if name in PARTS else f"{reference(name.removeprefix('api_'))}\n"


if __name__ == "__main__":
    for path in sorted(DOCS.rglob("*.md")):
        path.write_text(made_anew(path.read_text(encoding="utf-8")), encoding="utf-8")
    PRINTED.write_text(json.dumps(printed(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
