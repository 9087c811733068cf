"""Sentences by their key, in the reader's language.

    sentence("not-registered.reason", module="model", name="table")

A template names its parameters. Their format says how a value is written:

    {count:copy|copies}    1 copy, 2,000 copies
    {size:bytes}           1.5 KB
    {count:=is|are}        is, are
    {devices:and}          cpu, cuda:0 and cuda:1
    {name:Tensor}          `model.weight`; "A tensor" where it has no name, with `:it` "it"
    {reason:after_colon}   nothing moved it to cuda:0

Whole numbers have separators between thousands. The templates are in `en.json` and `zh.json`, under the same headings,
keys and parameters. PyTorch's own terms stay English in Chinese where Chinese readers use them so.

The key of an error is slug, variant and part (`unknown-command.flag.do`); a part that a variant lacks is the slug's. Of
a cause there are its meaning and what helps, remarks beside lines, its reason, and its advice where no edit fits.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Final

from devtrace.words import language
from devtrace.words.language import Language
from devtrace.words.text_format import format_bytes, format_time, pluralize

_UNNAMED: Final[dict[Language, dict[str, str]]] = {
    "en": {"tensor": "a tensor", "Tensor": "A tensor", "it": "it", "they": "they", "one": "this one"},
    "zh": {"tensor": "一个张量", "Tensor": "一个张量", "it": "它", "they": "它们", "one": "它"},
}
_CHINESE: Final = re.compile("[\u4e00-\u9fff]")
_OPENING: Final = re.compile(r"^[A-Z][a-z]*(?= )")
_JOINED: Final[dict[Language, tuple[str, str]]] = {"en": (", ", " and "), "zh": ("、", "和")}
_TOPIC: Final[ContextVar[str]] = ContextVar("topic", default="")
"""What the keys of a topic's own sentences begin with."""


def sentence(key: str, /, **values: Any) -> str:
    """Return the sentence of a key with its parameters filled in."""
    spoken = language.current()
    texts = templates(spoken)
    text = _FORMATTERS[spoken].vformat(texts.get(_TOPIC.get() + key) or texts[key], (), values)
    return _spaced_from_code(text) if spoken == "zh" else text


@contextmanager
def speaking_of(topic: str) -> Iterator[None]:
    """Use a topic's sentences, where it has its own: of dtypes `dtype:mismatch.tensor`, not `mismatch.tensor`."""
    token = _TOPIC.set(f"{topic}:" if topic else "")
    try:
        yield
    finally:
        _TOPIC.reset(token)


def family(pattern: str, *keys: str) -> Mapping[str, str]:
    """Return keys by what differs in them: `family("severity.*", "severity.error")` is {"error": "severity.error"}.

    Written out, so that a search for a key finds who asks for it.
    """
    before, _, after = pattern.partition("*")
    return {key.removeprefix(before).removesuffix(after): key for key in keys}


def has_sentence(key: str) -> bool:
    """Return whether there is a sentence of this key."""
    return key in templates(language.current())


def one_after_another(sentences: Iterable[str]) -> str:
    """Join sentences, leaving out the empty ones."""
    return ("" if language.current() == "zh" else " ").join(filter(None, sentences))


def unnamed() -> str:
    """Return what a tensor is called that has no name."""
    return _UNNAMED[language.current()]["tensor"]


def comma() -> str:
    """Return what stands between the items of a list."""
    return _JOINED[language.current()][0]


def _spaced_from_code(text: str) -> str:
    """Put a space between a Chinese character and code; what is in the code stays as it is."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        if index and _CHINESE.match(parts[index]):
            parts[index] = f" {parts[index]}"
        if index + 1 < len(parts) and _CHINESE.match(parts[index][-1:]):
            parts[index] += " "
    return "`".join(parts)


@cache
def templates(of: Language) -> Mapping[str, str]:
    """Return all templates of a language, by key."""
    headings: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / f"{of}.json").read_text("utf-8"))
    return {key: text for under in headings.values() for key, text in under.items()}


class _Sentence(Formatter):
    def __init__(self, language: Language) -> None:
        self.language: Language = language
        self.comma, self.last = _JOINED[language]

    def _join_last_two(self, left: str, right: str) -> str:
        """Join the last two; between Latin letters a Chinese character has a space at either side."""
        if self.language == "en":
            return f"{left}{self.last}{right}"
        before, after = (" " if letter.isascii() and letter != "`" else "" for letter in (left[-1:], right[:1]))
        return f"{left}{before}{self.last}{after}{right}"

    def format_field(self, value: Any, spec: str) -> str:
        if spec.startswith("="):
            one, many = spec[1:].split("|")
            return one if value == 1 else many
        if "|" in spec:
            return pluralize(value, *spec.split("|"))
        if spec in _UNNAMED[self.language]:
            return f"`{value}`" if value else _UNNAMED[self.language][spec]
        if spec == "after_colon":
            return _OPENING.sub(lambda word: word[0].lower(), value)
        if spec == "bytes":
            return format_bytes(value)
        if spec == "time":
            return format_time(value)
        if spec == "and":
            *first, last = value
            return self._join_last_two(self.comma.join(first), last) if first else str(last)
        return f"{value:,}" if isinstance(value, int) and not spec else str(super().format_field(value, spec))


_FORMATTERS: Final = {of: _Sentence(of) for of in language.LANGUAGES}
