"""Flags of `%%devtrace` and of `devtrace run`, each once: both parsers, both helps and the completion read this table.

Options(simulate="cuda:2", expect="cuda:0")     what one cell or program was started with
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from devtrace.runtime.device_spec import spec_of
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import UsageError

if TYPE_CHECKING:
    from devtrace.api.results import Trace

MAX_OPS: Final = 100_000
STANDING_BUDGET: Final = 0.1 if sys.version_info >= (3, 12) else None
"""Of a cell that nobody asked to trace: `%devtrace on` may stay on for a day.

Not on Python 3.11, which shows no new line while nothing is recorded: causes of what begins there would be unknown.
"""

_DEVICE: Final = re.compile(r"(cpu|cuda|mps|xpu|meta|hpu|mtia|xla|npu|privateuseone)(:\d+)?")
_DEVICES: Final = re.compile(r"cuda|\d+|[A-Za-z]\w*:\d.*|(cuda|\d+),.*")
_INDEXED: Final = re.compile(r"[A-Za-z_]\w*:\d+")


@dataclass(frozen=True, slots=True)
class Options:
    """Values of the flags of one cell or program."""

    name: str = ""
    simulate: str | None = None
    max_ops: int = MAX_OPS
    save: str | None = None
    html: str | None = None
    timeline: bool = True
    memory: bool = False
    expect: str | None = None
    json: str | None = None
    sarif: str | None = None
    budget: float | None = None
    fail_on: str | None = None
    notes: bool = False
    case: bool = False
    source: bool = True

    def saver(self, trace: Trace) -> Callable[[Path], Path]:
        """Return what writes a trace as `--save` asks for it."""
        return partial(trace.save, source=self.source, case=self.case)

    @property
    def of_recording(self) -> dict[str, Any]:
        """Return the options that are arguments of `record` as they are."""
        return {"max_ops": self.max_ops, "budget": self.budget, "memory": self.memory, "expect": self.expect}

    @property
    def files(self) -> tuple[str | None, ...]:
        return self.save, self.html, self.json, self.sarif

    def check_files(self) -> None:
        """Refuse, before anything runs, a file in a folder that does not exist."""
        for flag, file in zip(("--save", "--html", "--json", "--sarif"), self.files, strict=True):
            folder = os.path.dirname(file or "") or "."
            if not os.path.isdir(folder):
                raise UsageError.of("folder-missing", flag=flag, file=file, folder=folder)


@dataclass(frozen=True, slots=True)
class Keyword:
    """A subcommand or flag by the key of its help, the name of its value ("" if it takes none), values to complete."""

    key: str
    metavar: str
    offers: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def name(self) -> str:
        return self.key.removeprefix("command.").replace("flag.", "--")

    @property
    def help(self) -> str:
        return sentence(self.key, usual=MAX_OPS)

    def __str__(self) -> str:
        return f"{self.name} {self.metavar}".rstrip()


@dataclass(frozen=True, slots=True)
class Flag(Keyword):
    """A flag of `%%devtrace`, and of `devtrace run` if it has words for that; `read` makes its value of text."""

    program_key: str = ""
    read: Callable[[str], Any] = str
    alone: str = field(default="", kw_only=True)  # its value where none follows

    @property
    def field(self) -> str:
        """Name the field of Options: `--max-ops` sets max_ops, `--no-timeline` clears timeline."""
        return self.name.removeprefix("--").removeprefix("no-").replace("-", "_")


def _read_count(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or int(digits) == 0:
        raise UsageError.of("max-ops", given=text, usual=str(MAX_OPS))
    return int(digits)


def _read_budget(text: str) -> float:
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if number != text else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError.of("budget-value", given=text)
    return value


def checked_budget(value: Any) -> float | None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
    ):
        raise UsageError.of("budget-value.argument", given=repr(value))
    return value


def _read_device(text: str) -> str:
    """Refuse a misspelt device: it would be a false alarm at every op."""
    if not (_DEVICE.fullmatch(text) or may_be_a_device(text)):
        raise UsageError.of("expect-value", given=text)
    return text


def may_be_a_device(text: str) -> bool:
    """Return whether torch knows a device of this name, or may come to know it: a backend that nobody imported yet."""
    torch = sys.modules.get("torch")
    if torch is None:
        return _INDEXED.fullmatch(text) is not None
    try:
        torch.device(text)
    except RuntimeError:
        return False
    return True


def with_values(words: Sequence[str], takes_value: Mapping[str, bool], *, to_program: bool = False) -> list[str]:
    """Write out the value of a flag that stands alone: `--simulate train.py` is `--simulate cuda:1 train.py`.

    `to_program`: from the first word on that is neither a flag nor the value of one, all are the program's.
    """
    written: list[str] = []
    rest = deque(words)
    while rest:
        written.append(word := rest.popleft())
        if to_program and not word.startswith("-"):
            break
        if word in _ALONE and not (rest and _DEVICES.fullmatch(rest[0])):
            written.append(_ALONE[word])
        elif takes_value.get(word) and rest:
            written.append(rest.popleft())
    return [*written, *rest]


def nearest(given: str, known: Iterable[str]) -> str:
    """Return the known name that was probably meant; empty where none is similar."""
    return next(iter(get_close_matches(given, list(known), n=1)), "")


def unknown_flag(word: str, flags: Sequence[object], *, command: str, help: str) -> UsageError:
    """Return the error for a flag that a command does not have; each of `flags` as text begins with its name."""
    near = nearest(word.partition("=")[0], (str(flag).partition(" ")[0] for flag in flags))
    slug = "unknown-flag.near" if near else "unknown-flag"
    return UsageError.of(slug, flag=word, near=near, flags=comma().join(map(str, flags)), command=command, help=help)


FLAGS: Final = (
    Flag("flag.simulate", "cuda:N", "flag.simulate.program", spec_of, offers=("cuda:1", "cuda:2"), alone="cuda:1"),
    Flag("flag.max-ops", "N", "flag.max-ops.program", _read_count),
    Flag("flag.budget", "P", "flag.budget.program", _read_budget, offers=("10%",)),
    Flag("flag.save", "FILE", "flag.save.program", os.path.expanduser),
    Flag("flag.case", "", "flag.case.program"),
    Flag("flag.no-source", "", "flag.no-source.program"),
    Flag("flag.html", "FILE", "flag.html.program", os.path.expanduser),
    Flag("flag.json", "FILE", "flag.json.program", os.path.expanduser),
    Flag("flag.sarif", "FILE", "flag.sarif.program", os.path.expanduser),
    Flag("flag.memory", "", "flag.memory.program"),
    Flag("flag.no-timeline", ""),
    Flag("flag.expect", "DEVICE", "flag.expect.program", _read_device, offers=("cpu", "cuda:0", "cuda:1")),
)
_ALONE: Final = {flag.name: flag.alone for flag in FLAGS if flag.alone}
