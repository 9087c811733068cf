"""argparse with its own words in the reader's language."""

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from devtrace.api.options import unknown_flag, with_values
from devtrace.words.catalogue import sentence
from devtrace.words.wrapping import wrap

WIDTH = 78
"""Columns of a description."""


class Command(NamedTuple):
    """One that a feature offers: the kernel's own that it comes behind in the help, and what adds its parser."""

    after: str
    add_to: Callable[[Any], None]


class Parser(argparse.ArgumentParser):
    """Parser of `devtrace` and, made by `add_subparsers`, of each command."""

    def __init__(self, description: str = "", epilog: str = "", **options: Any) -> None:
        options |= {"description": _paragraph(description), "epilog": _paragraph(epilog)}
        super().__init__(add_help=False, allow_abbrev=False, formatter_class=_Formatter, **options)
        self._positionals.title, self._optionals.title = sentence("cli.arguments"), sentence("cli.options")
        self.add_argument("-h", "--help", action="help", help=sentence("cli.help"))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        arguments = sys.argv[1:] if args is None else list(args)
        words = with_values(arguments, self.takes_value, to_program=True)
        options, unknown = super().parse_known_args(words, namespace)
        for word in unknown:
            if word.startswith("-"):
                raise unknown_flag(word, [*self.takes_value], command=self.prog, help=f"{self.prog} --help")
        return options, unknown

    @property
    def takes_value(self) -> dict[str, bool]:
        """Return the flags, and whether a value follows each."""
        flags = {name: action.nargs != 0 for action in self._actions for name in action.option_strings}
        return {name: value for name, value in flags.items() if name.startswith("--") and name != "--help"}


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Iterable[Any], prefix: str | None = None
    ) -> None:
        super().add_usage(usage, actions, groups, sentence("cli.usage") if prefix is None else prefix)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width)


def _paragraph(text: str) -> str | None:
    return "\n".join(wrap(text, WIDTH)) if text else None
