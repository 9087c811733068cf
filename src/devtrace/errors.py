"""The errors that devtrace raises at its user, each with a slug that names the message.

A message says what was got, what was expected and what to do, in this order and in one sentence each:

    trace-newer: got a trace of version 3; this devtrace reads versions 1 to 1; update devtrace with pip.

The slug is what tests, the README and a search engine hold on to; the words may get better.
"""

from __future__ import annotations


class DevtraceError(Exception):
    """What went wrong in devtrace's own terms; never raised into a traced program."""

    def __init__(self, slug: str, got: str, expected: str, do: str) -> None:
        super().__init__(slug, got, expected, do)
        self.slug = slug
        self.got = got
        self.expected = expected
        self.do = do

    def __str__(self) -> str:
        return f"{self.slug}: got {self.got}; {self.expected}; {self.do}."


class DeviceError(DevtraceError):
    """`devtrace.expect` found tensors on another device than the one expected."""


class FormatError(DevtraceError):
    """A trace that is foreign, damaged or newer than this devtrace."""


class SimulateError(DevtraceError):
    """A simulated device that cannot be had, or was used outside its simulation."""


class SetupError(DevtraceError):
    """The environment: torch missing or too old, a Python or a JupyterLab that cannot carry devtrace."""


class UsageError(DevtraceError):
    """A magic, a command or a function called with what it does not take."""
