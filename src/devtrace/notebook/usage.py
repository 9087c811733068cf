"""What the magics take: every flag and subcommand once, in tables that the parser, help, completion and tests read.

    %%devtrace [name] [--simulate cuda:N] [--max-ops N] [--save FILE] [--html FILE] [--no-timeline] [--expect DEVICE]
    %devtrace on | off | status | check | report [name] | save FILE | simulate cuda:N | simulate off | help

A backslash is an ordinary character, so that Windows paths need no care; a name or path with spaces is quoted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devtrace.words.errors import UsageError

MAX_OPS = 100_000


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of `%%devtrace`, the name of its value ("" if it takes none) and what it does."""

    name: str
    value: str
    help: str

    def __str__(self) -> str:
        return f"{self.name} {self.value}".rstrip()


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand of `%devtrace`, what may follow it, and what it does."""

    name: str
    argument: str
    help: str

    @property
    def needs(self) -> bool:
        return bool(self.argument) and not self.argument.startswith("[")

    def __str__(self) -> str:
        return f"{self.name} {self.argument}".rstrip()


FLAGS = (
    Flag("--simulate", "cuda:N", "run the cell on N pretended CUDA devices, with real values and CUDA's own rules"),
    Flag("--max-ops", "N", f"keep at most N ops ({MAX_OPS:,}); repetitions above it are folded, counts stay exact"),
    Flag("--save", "FILE", "write the trace to FILE, which devtrace.load and JupyterLab open"),
    Flag("--html", "FILE", "write the report to FILE as one page that needs nothing else"),
    Flag("--no-timeline", "", "show the findings without the timeline"),
    Flag("--expect", "DEVICE", "report every tensor that the cell computes with on another device than DEVICE"),
)

COMMANDS = (
    Command("on", "", "trace every following cell; a report is shown where there is something to say"),
    Command("off", "", "trace only the cells that begin with %%devtrace"),
    Command("status", "", "say what is traced, simulated and kept"),
    Command("check", "", "say what this environment has: torch's build, devices, default device"),
    Command("report", "[name]", "show the report of the last traced cell, or of the one of this name or number"),
    Command("save", "FILE", "write the last trace to FILE"),
    Command("simulate", "cuda:N | off", "give this whole session N pretended CUDA devices, or take them away"),
    Command("help", "", "print this"),
)

_ANY_MAGIC = re.compile(r"%%(\w+)")
_MAGIC = re.compile(r"%%devtrace(?:\s|$)")

_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|meta|hpu|mtia|xla|npu|privateuseone)(:\d+)?")

_FLAG = {flag.name: flag for flag in FLAGS}
_COMMAND = {command.name: command for command in COMMANDS}


@dataclass(frozen=True, slots=True)
class Options:
    """What the line of one `%%devtrace` asks for."""

    name: str = ""
    simulate: str | None = None
    max_ops: int = MAX_OPS
    save: str | None = None
    html: str | None = None
    timeline: bool = True
    expect: str | None = None


def magic_line(lines: Sequence[str]) -> int | None:
    """The index of the `%%devtrace` line: the first of the cell that is neither blank nor a comment."""
    for index, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith("#"):
            return index if _MAGIC.match(line) else None
    return None


def lines_above(lines: Sequence[str]) -> int:
    """How many lines of a cell with `%%devtrace` to drop so that the %%magic below it comes first; 0 without one."""
    above = magic_line(lines)
    if above is None:
        return 0
    below = next((index for index in range(above + 1, len(lines)) if lines[index].strip()), None)
    return below if below is not None and lines[below].startswith("%%") else 0


def bodies(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each %%magic at the top of a cell with the index of the first line below it."""
    name = ""
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        if name:
            yield name, index
        found = _ANY_MAGIC.match(line)
        if found is None:
            return
        name = found[1]


def without_magic(lines: list[str]) -> list[str]:
    """The cell's lines, each in its place, with a comment for the `%%devtrace` line."""
    index = magic_line(lines)
    if index is None:
        return lines
    if dropped := lines_above(lines):
        return lines[dropped:]
    return [*lines[:index], f"# {lines[index]}", *lines[index + 1 :]]


def cell_options(line: str) -> Options:
    """Read what follows `%%devtrace`."""
    names: list[str] = []
    values: dict[str, str] = {}
    words = iter(_words(line, "%%devtrace"))
    for word in words:
        if word.startswith("-"):
            flag, value = _flag(word, words)
            values[flag.name] = value
        else:
            names.append(word)
    if len(names) > 1:
        raise UsageError(
            "two-names",
            f"the names {' and '.join(map(repr, names))}",
            "%%devtrace takes one name",
            f'quote a name of several words: %%devtrace "{" ".join(names)}"',
        )
    return Options(
        name="".join(names),
        simulate=values.get("--simulate"),
        max_ops=_count(values.get("--max-ops", str(MAX_OPS))),
        save=values.get("--save"),
        html=values.get("--html"),
        timeline="--no-timeline" not in values,
        expect=_device(values.get("--expect")),
    )


def command(line: str) -> tuple[str, str]:
    """Read what follows `%devtrace`: the subcommand and its argument; no subcommand is `status`."""
    name, *arguments = _words(line, "%devtrace") or ["status"]
    known = _COMMAND.get(name)
    if known is None:
        hint = "put a second % before it to trace a cell" if name in _FLAG else "%devtrace help explains them"
        raise UsageError("unknown-command", f"%devtrace {name}", f"it takes {_any_of(COMMANDS)}", hint)
    if len(arguments) > bool(known.argument) or (known.needs and not arguments):
        given = " ".join([f"%devtrace {name}", *arguments])
        raise UsageError("command-argument", given, f"the form is %devtrace {known}", "%devtrace help explains it")
    return name, "".join(arguments)


def help_text() -> str:
    """Every flag and subcommand, as `%devtrace help` prints it."""
    return "\n".join(
        [
            "%%devtrace [name] [flags]   on the first line of a cell: run it and show where its devices meet",
            *_lines(FLAGS),
            "",
            "%devtrace COMMAND",
            *_lines(COMMANDS),
        ]
    )


def completions(line: str, traces: list[str]) -> list[str]:
    """What may stand in place of the last word of a line that begins with %devtrace or %%devtrace."""
    before, _, word = line.rpartition(" ")
    previous = before.split()
    if not previous:
        return []
    return [option for option in _may_follow(previous, traces) if option.startswith(word)]


def _may_follow(previous: list[str], traces: list[str]) -> list[str]:
    last = previous[-1]
    if previous[0].startswith("%%"):
        if last == "--simulate":
            return ["cuda:1", "cuda:2"]
        if last == "--expect":
            return ["cpu", "cuda:0", "cuda:1"]
        return [] if last in _FLAG and _FLAG[last].value else [name for name in _FLAG if name not in previous]
    if len(previous) == 1:
        return list(_COMMAND)
    if len(previous) == 2:
        return {"simulate": ["cuda:1", "cuda:2", "off"], "report": traces}.get(last, [])
    return []


def _words(line: str, magic: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(
            "open-quote", f"{magic} {line.strip()}", "a quote that begins must end", 'write "a name" or "a/path"'
        ) from None


def _flag(word: str, words: Iterator[str]) -> tuple[Flag, str]:
    name, equals, value = word.partition("=")
    flag = _FLAG.get(name)
    if flag is None:
        raise UsageError(
            "unknown-flag", f"%%devtrace {word}", f"its flags are {_any_of(FLAGS)}", "%devtrace help explains them"
        )
    if flag.value and not equals:
        value = next(words, "")
    if bool(flag.value) != bool(value) or value.startswith("--"):
        expected = f"it is written {flag}" if flag.value else f"{name} takes no value"
        raise UsageError("flag-value", f"{name} with {value or 'nothing'!r}", expected, "%devtrace help explains it")
    return flag, value


def _count(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or int(digits) == 0:
        raise UsageError("max-ops", f"--max-ops {text}", "it takes a number above 0", f"write --max-ops {MAX_OPS}")
    return int(digits)


def _device(text: str | None) -> str | None:
    """A misspelt device would be a false alarm at every op."""
    if text is not None and not _DEVICE.fullmatch(text):
        raise UsageError(
            "expect-value",
            f"--expect {text}",
            "it takes a device: cpu, cuda, cuda:0, mps, xpu:1 and the like",
            "write --expect cuda:0",
        )
    return text


def _any_of(rows: tuple[Flag, ...] | tuple[Command, ...]) -> str:
    return ", ".join(map(str, rows))


def _lines(rows: tuple[Flag, ...] | tuple[Command, ...]) -> list[str]:
    width = max(len(str(row)) for row in rows) + 3
    return [f"    {row!s:<{width}}{row.help}" for row in rows]
