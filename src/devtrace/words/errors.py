"""The errors that devtrace raises at its user, each with a slug that names the message.

A message says what was got, what was expected and what to do, in this order and in one sentence each:

    trace-newer: got a trace of version 3; this devtrace reads versions 1 to 1; update devtrace with pip.

The slug is what tests, the README and a search engine hold on to; the words may get better.
"""

from collections.abc import Iterable
from typing import Any, Final, Self

from devtrace.words.catalogue import has_sentence, sentence

MOST_TENSORS: Final = 20
"""Lines of a message; the error holds the rest."""


class DevtraceError(Exception):
    """An error in the use of devtrace."""

    def __init__(self, slug: str, got: str, expected: str, do: str) -> None:
        super().__init__(slug, got, expected, do)
        self.slug = slug
        self.got = got
        self.expected = expected
        self.do = do

    @classmethod
    def of(cls, name: str, /, **values: Any) -> Self:
        """Make the error of a slug, or of `slug.variant`, in the reader's language."""
        slug = name.partition(".")[0]
        return cls(slug, *(_text_of_part(name, slug, part, values) for part in ("got", "expected", "do")))

    def __str__(self) -> str:
        return sentence("error.whole", slug=self.slug, got=self.got, expected=self.expected, do=self.do)


def _text_of_part(name: str, slug: str, part: str, values: dict[str, Any]) -> str:
    """Return the text of `unknown-flag.near.do`, or of `unknown-flag.do` where the variant has none."""
    key = f"{name}.{part}"
    return sentence(key if has_sentence(key) else f"{slug}.{part}", **values)


def named(fault: BaseException) -> str:
    """Return the type and text of an exception of anybody's."""
    return f"{type(fault).__name__}: {fault}"


class DeviceError(DevtraceError):
    """A tensor is not on the expected device (see `error.tensors`), or a block does more than `expect` allows."""

    tensors: tuple[Any, ...] = ()

    def with_tensors(self, tensors: Iterable[Any]) -> Self:
        """Return the error itself, holding these."""
        self.tensors = tuple(tensors)
        return self

    def __str__(self) -> str:
        shown = [f"\n  {tensor}" for tensor in self.tensors[:MOST_TENSORS]]
        more = len(self.tensors) - len(shown)
        rest = [f"\n  {sentence('error.more', count=more)}"] if more else []
        return "".join([super().__str__(), *shown, *rest])


class FormatError(DevtraceError):
    """A file is not a trace, is damaged, or was written by a newer devtrace."""


class SimulateError(DevtraceError):
    """A simulation cannot start, a simulated device lacks a feature, or a tensor's simulation has ended."""


class SetupError(DevtraceError):
    """Torch is missing, or torch, Python or JupyterLab is too old for devtrace."""


class UsageError(DevtraceError):
    """A magic, a command or a function got an argument that it does not take."""


def expect_kind(call: str, given: object, *kinds: type, error: str) -> None:
    """Refuse an argument of another type by name, before an attribute of it is missed deep below.

    devtrace.diagnose(model)        error="wrong-argument.trace"
    """
    if not isinstance(given, kinds):
        raise UsageError.of(error, call=call, kind=type(given).__name__)
