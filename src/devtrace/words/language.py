"""The language of what a reader is shown.

What the user chose comes first, then JupyterLab's display language, `DEVTRACE_LANGUAGE`, and the locale.
"""

import os
from typing import Final, Literal, get_args

Language = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
VARIABLE: Final = "DEVTRACE_LANGUAGE"
LOCALE_VARIABLES: Final = ("LC_ALL", "LC_MESSAGES", "LANG")
"""In the order in which the C library asks them; the first one that is set decides."""


class LanguageChoice:
    """Languages that the user and the front end asked for; None where they asked for nothing."""

    def __init__(self) -> None:
        self.user: Language | None = None
        self.front_end: Language | None = None


CHOICE: Final = LanguageChoice()


def current() -> Language:
    """Return the language that sentences are made in now."""
    return CHOICE.user or CHOICE.front_end or of_tag(os.environ.get(VARIABLE, "")) or _of_locale()


def of_tag(tag: str) -> Language | None:
    """Return the language of a tag such as `zh_CN.UTF-8`, `zh-Hans` or `en`; None for all others."""
    name = tag.replace("-", "_").partition("_")[0].partition(".")[0].lower()
    return next((language for language in LANGUAGES if language == name), None)


def _of_locale() -> Language:
    tag = next((value for name in LOCALE_VARIABLES if (value := os.environ.get(name))), "")
    return of_tag(tag) or "en"
