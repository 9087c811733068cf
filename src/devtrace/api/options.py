"""Flags of `%%devtrace` and of `devtrace run`, each once: both parsers, both helps and the completion read this table.

Options(simulate="cuda:2", expect="cuda:0")     what one cell or program was started with
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from devtrace.runtime.device_spec import spec_of
from devtrace.words.errors import UsageError

MAX_OPS: Final = 100_000

_DEVICE: Final = re.compile(r"(cpu|cuda|mps|xpu|meta|hpu|mtia|xla|npu|privateuseone)(:\d+)?")
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
    expect: str | None = None
    json: str | None = None
    sarif: str | None = None
    budget: float | None = None

    def check_files(self) -> None:
        """Refuse before anything runs a file that cannot be written after it."""
        for flag, file in (
            ("--save", self.save),
            ("--html", self.html),
            ("--json", self.json),
            ("--sarif", self.sarif),
        ):
            folder = os.path.dirname(file or "") or "."
            if not os.path.isdir(folder):
                raise UsageError(
                    "folder-missing",
                    f"{flag} {file}",
                    f"there is no folder {folder}",
                    f"make it first: mkdir -p {folder}",
                )


@dataclass(frozen=True, slots=True)
class Keyword:
    """A flag or subcommand, the name of its value ("" if it takes none), its help, and values to complete."""

    name: str
    metavar: str
    help: str
    offers: tuple[str, ...] = field(default=(), kw_only=True)

    def __str__(self) -> str:
        return f"{self.name} {self.metavar}".rstrip()


@dataclass(frozen=True, slots=True)
class Flag(Keyword):
    """A flag of `%%devtrace`, and of `devtrace run` where that has a help for it; `read` makes its value of text."""

    program_help: str = ""
    read: Callable[[str], Any] = str

    @property
    def field(self) -> str:
        """Name the field of Options: `--max-ops` sets max_ops, `--no-timeline` clears timeline."""
        return self.name.removeprefix("--").removeprefix("no-").replace("-", "_")


def _read_count(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or int(digits) == 0:
        raise UsageError("max-ops", f"--max-ops {text}", "it takes a number above 0", f"write --max-ops {MAX_OPS}")
    return int(digits)


def _read_budget(text: str) -> float:
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if number != text else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(
            "budget-value", f"--budget {text}", "it takes a share of the time above 0", "write --budget 10%"
        )
    return value


def checked_budget(value: Any) -> float | None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
    ):
        raise UsageError(
            "budget-value", f"budget={value!r}", "it takes a share of the time above 0", "write budget=0.1"
        )
    return value


def _read_device(text: str) -> str:
    """Refuse a misspelt device: it would be a false alarm at every op."""
    if not (_DEVICE.fullmatch(text) or may_be_a_device(text)):
        raise UsageError(
            "expect-value",
            f"--expect {text}",
            "it takes a device: cpu, cuda, cuda:0, mps, xpu:1 and the like",
            "write --expect cuda:0",
        )
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


FLAGS: Final = (
    Flag("--simulate", "cuda:N", "run the cell on N pretended CUDA devices (cuda:2 or 2), which obey CUDA's rules",
         "give the program N pretended CUDA devices (cuda:2 or 2)", spec_of, offers=("cuda:1", "cuda:2")),
    Flag("--max-ops", "N", f"keep at most N ops ({MAX_OPS:,}); repetitions above it are folded, counts stay exact",
         f"keep at most N ops ({MAX_OPS}); counts stay exact", _read_count),
    Flag("--budget", "P", "record what repeats in a loop only now and then, so that it takes about P (10%) more time",
         "record what repeats only now and then, so that it takes about P (10%) more time", _read_budget,
         offers=("10%",)),
    Flag("--save", "FILE", "write the trace to FILE, which devtrace.load and JupyterLab open",
         "save the trace to a file, which `devtrace view` and JupyterLab open", os.path.expanduser),
    Flag("--html", "FILE", "write the report to FILE as one page that needs nothing else",
         "write the report as one page that opens offline", os.path.expanduser),
    Flag("--json", "FILE", "write the findings to FILE as JSON, for programs",
         "write the findings as JSON, for programs", os.path.expanduser),
    Flag("--sarif", "FILE", "write the findings to FILE as SARIF 2.1.0, for code scanning",
         "write the findings as SARIF 2.1.0, for code scanning", os.path.expanduser),
    Flag("--no-timeline", "", "show the findings without the timeline"),
    Flag("--expect", "DEVICE", "report every tensor that the cell computes with on another device than DEVICE",
         "report every tensor that it computes with elsewhere", _read_device, offers=("cpu", "cuda:0", "cuda:1")),
)  # fmt: skip
