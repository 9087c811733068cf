"""Tables and examples of docs/, from the code and the corpus.

python tools/make_docs.py       writes them anew between their markers
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from textwrap import fill, indent
from typing import Any, Final, get_args

import devtrace
from devtrace.api.options import FLAGS, Keyword
from devtrace.diagnosis.rules.error_rules import rule_slugs
from devtrace.diagnosis.slugs import MEANINGS, CauseSlug, RuleSlug
from devtrace.notebook.usage import COMMANDS
from devtrace.words import language
from devtrace.words.catalogue import family, sentence

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
CORPUS: Final = ROOT / "tests" / "corpus"
DTYPES: Final = ROOT / "tests" / "dtypes" / "programs"
COSTS: Final[dict[RuleSlug, str]] = {
    "host-sync": "progress_line",
    "host-to-device-copy": "full_batch",
    "device-to-host-copy": "augment_host",
}
"""Of the rules for what costs time, a short program that each finds something in."""
HELPS: Final = family(
    "*.helps", "attached-after-move.helps", "not-registered.helps", "created-without-device.helps",
    "never-moved.helps", "stale-copy.helps", "wrong-device.helps", "host-boundary.helps", "generator-device.helps",
    "default-device.helps", "attached-after-cast.helps", "created-without-dtype.helps", "never-cast.helps",
    "wrong-dtype.helps", "numpy-boundary.helps", "autocast-off.helps", "python-number.helps", "target-dtype.helps",
    "unknown.helps",
)  # fmt: skip


def rules() -> str:
    rows = [(f"`{slug}`", sentence(MEANINGS[slug])) for slug in get_args(RuleSlug) if slug in rule_slugs()]
    return _table(("rule", "it means"), *rows)


def causes() -> str:
    rows = [(f"`{slug}`", sentence(MEANINGS[slug]), sentence(HELPS[slug])) for slug in get_args(CauseSlug)]
    return _table(("cause", "it means", "what helps"), *rows)


def flags() -> str:
    return _table(("flag of `%%devtrace`", "what it does"), *(_row("", flag) for flag in FLAGS))


def commands() -> str:
    return _table(("command", "what it does"), *(_row("%devtrace ", command) for command in COMMANDS))


def examples() -> str:
    """Show the shortest program of each cause, and one of the costs, each with its report."""
    causes = (slug for slug in get_args(CauseSlug) if slug != "unknown")
    costs = (rule for rule in rule_slugs() if rule in COSTS)
    shown = [_example(slug, sentence(MEANINGS[slug]), _shortest(slug)) for slug in causes]
    return "".join(
        (*shown, *(_example(rule, sentence(MEANINGS[rule]), CORPUS / "costs" / COSTS[rule]) for rule in costs))
    )


def _shortest(cause: str) -> Path:
    folder = CORPUS / cause if (CORPUS / cause).is_dir() else DTYPES / cause
    return min(folder.iterdir(), key=lambda folder: (len((folder / "bug.py").read_text()), folder.name))


def _example(slug: str, meaning: str, folder: Path) -> str:
    program = (folder / "bug.py").read_text(encoding="utf-8").strip()
    report = indent(
        (folder / "report.txt").read_text(encoding="utf-8").rstrip(), "    ", lambda line: bool(line.strip())
    )
    return f"### {slug}\n\n{meaning[0].upper()}{meaning[1:]}.\n\n```python\n{program}\n```\n\n{report}\n\n"


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
    "examples": examples,
}
_PART: Final = re.compile(r"(<!-- (\w+): tools/make_docs\.py -->\n).*?(<!-- end of \2 -->)", re.S)


def made_anew(text: str) -> str:
    """Return a document with every part between markers made anew."""
    return _PART.sub(lambda match: match[1] + _made(match[2]) + match[3], text)


def _made(part: str) -> str:
    return PARTS[part]() if part in PARTS else f"{reference(part.removeprefix('api_'))}\n"


if __name__ == "__main__":
    language.CHOICE.user = "en"
    for path in sorted(DOCS.glob("*.md")):
        path.write_text(made_anew(path.read_text(encoding="utf-8")), encoding="utf-8")
