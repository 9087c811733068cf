"""Levels of `--fail-on`, in a module that a command line reads before anything heavy is imported."""

from typing import Final

from devtrace.words.errors import UsageError

FAIL_ON: Final = ("error", "warning")


def read_level(text: str) -> str:
    """Return the level that `--fail-on` names, or raise."""
    if text not in FAIL_ON:
        raise UsageError.of("fail-on", given=text)
    return text
