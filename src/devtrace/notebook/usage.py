"""Reads the lines of the magics; `api.options` has the flags, COMMANDS the subcommands, each once.

A backslash is an ordinary character, so that Windows paths need no care; a name or path with spaces is quoted.
"""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from devtrace.api.options import FLAGS, Flag, Keyword, Options, nearest, unknown_flag, with_values
from devtrace.features import offered
from devtrace.source.parsing import parse
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import UsageError

# The kernel's own; a value in brackets is optional.
_OWN = (
    Keyword("command.on", "[--simulate cuda:N]"),
    Keyword("command.off", ""),
    Keyword("command.status", ""),
    Keyword("command.check", ""),
    Keyword("command.report", "[name]"),
    Keyword("command.save", "[--case] FILE"),
    Keyword("command.simulate", "cuda:N | off", offers=("cuda:1", "cuda:2", "off")),
    Keyword("command.language", "zh | en | auto", offers=("zh", "en", "auto")),
    Keyword("command.renderer", "[auto | script | static]", offers=("auto", "script", "static")),
    Keyword("command.ignore", "[RULE | off]", offers=("host-sync", "off")),
    Keyword("command.devices", ""),
    Keyword("command.help", ""),
)
_OF_FEATURES = [companion.magic for companion in offered("notebook").values()]
COMMANDS = tuple(command for own in _OWN for command in (own, *(it for it in _OF_FEATURES if it.after == own.name)))

CASE = "--case "
"""Before the file of `%devtrace save`."""
_ANY_MAGIC = re.compile(r"%%(\w+)")
_COMMENT = re.compile(r"(?:^|\s)#")
_AS_LINE_MAGIC = "get_ipython().run_line_magic('%devtrace',"
_MAGIC = re.compile(r"%%devtrace(?:\s|$)")

_FLAG = {flag.name: flag for flag in FLAGS}
_COMMAND = {command.name: command for command in COMMANDS}


def magic_line(lines: Sequence[str]) -> int | None:
    """Return the index of the `%%devtrace` line: the first of the cell that is neither blank nor a comment."""
    for index, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith("#"):
            return index if _MAGIC.match(line) else None
    return None


def lines_above(lines: Sequence[str]) -> int:
    """Count the lines above a %%magic that follows `%%devtrace`: they are dropped so that it comes first. Else 0."""
    above = magic_line(lines)
    if above is None:
        return 0
    below = next((index for index in range(above + 1, len(lines)) if lines[index].strip()), None)
    return below if below is not None and lines[below].startswith("%%") else 0


def bodies(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each %%magic at the top of a cell with the index of the first line below it."""
    name = ""
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        if name:
            yield name, index
        match = _ANY_MAGIC.match(line)
        if match is None:
            return
        name = match[1]


def line_of_misplaced(code: str) -> int:
    """Return the line of a `%%devtrace` that IPython has read as a line magic, 0 without one."""
    parsed = parse(code) if _AS_LINE_MAGIC in code else None
    statements = parsed.tree.body if parsed is not None else []
    lines = (node.lineno for node in statements if ast.unparse(node).startswith(_AS_LINE_MAGIC))
    return next(lines, 0)


def misplaced(line: int = 0) -> UsageError:
    return UsageError.of("magic-line.known" if line else "magic-line", line=line)


def is_alone(cell: str) -> bool:
    """Return whether a cell with `%%devtrace` has no code."""
    return all(not line.strip() or line.lstrip().startswith(("#", "%%devtrace")) for line in cell.splitlines())


def without_magic(lines: list[str]) -> list[str]:
    """Make the `%%devtrace` line a comment; every other line keeps its number."""
    index = magic_line(lines)
    if index is None:
        return lines
    if dropped := lines_above(lines):
        return lines[dropped:]
    return [*lines[:index], f"# {lines[index]}", *lines[index + 1 :]]


def cell_options(line: str) -> Options:
    """Read what follows `%%devtrace`."""
    names: list[str] = []
    values: dict[str, Any] = {}
    words = iter(with_values(_words(line, "%%devtrace"), {flag.name: bool(flag.metavar) for flag in FLAGS}))
    for word in words:
        if word.startswith("-"):
            flag, value = _flag_and_value(word, words)
            values[flag.field] = flag.read(value) if flag.metavar else not word.startswith("--no-")
        else:
            names.append(word)
    if len(names) > 1:
        raise UsageError.of("two-names", names=list(map(repr, names)), whole=" ".join(names))
    return Options(name="".join(names), **values)


def command(line: str) -> tuple[str, str]:
    """Read what follows `%devtrace`: the subcommand and its argument; no subcommand is `status`."""
    name, *arguments = _words(line, "%devtrace") or ["status"]
    keyword = _COMMAND.get(name)
    if keyword is None:
        similar = nearest(name, _COMMAND)
        slug = "unknown-command.flag" if name in _FLAG else "unknown-command.near" if similar else "unknown-command"
        raise UsageError.of(slug, name=name, near=similar, commands=comma().join(map(str, COMMANDS)))
    if name == "on" and "--simulate" in arguments:
        return name, cell_options(" ".join(arguments)).simulate or ""
    if name == "save" and arguments[:1] == [CASE.strip()] and len(arguments) == 2:
        return name, CASE + arguments[1]
    takes_one = bool(keyword.metavar) and name != "on"
    if len(arguments) > takes_one or (not arguments and (name == "save" or keyword.metavar[:1] not in ("", "["))):
        whole_line = " ".join([f"%devtrace {name}", *arguments])
        raise UsageError.of("command-argument", given=whole_line, form=keyword)
    return name, "".join(arguments)


def help_text() -> str:
    """List every flag and subcommand, as `%devtrace help` prints them."""
    return "\n".join([sentence("help.cell"), *_help_lines(FLAGS), "", sentence("help.line"), *_help_lines(COMMANDS)])


def completions(line: str, traces: list[str]) -> list[str]:
    """Complete the last word of a line that begins with %devtrace or %%devtrace."""
    before, _, word = line.rpartition(" ")
    return [option for option in _may_follow(before.split(), traces) if option.startswith(word)]


def _may_follow(previous: list[str], traces: list[str]) -> list[str]:
    previous_word = previous[-1]
    if previous[0].startswith("%%"):
        if previous_word in _FLAG and _FLAG[previous_word].metavar:
            return list(_FLAG[previous_word].offers)
        return [name for name in _FLAG if name not in previous]
    if len(previous) == 1:
        return list(_COMMAND)
    if len(previous) > 2 or previous_word not in _COMMAND:
        return []
    return traces if previous_word == "report" else list(_COMMAND[previous_word].offers)


def _words(line: str, magic: str) -> list[str]:
    without_comment = line if "'" in line or '"' in line else _COMMENT.split(line)[0]
    lexer = shlex.shlex(without_comment, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError.of("open-quote", given=f"{magic} {line.strip()}") from None


def _flag_and_value(word: str, words: Iterator[str]) -> tuple[Flag, str]:
    name, equals, value = word.partition("=")
    flag = _FLAG.get(name)
    if flag is None:
        raise unknown_flag(word, FLAGS, command="%%devtrace", help="%devtrace help")
    if flag.metavar and not equals:
        value = next(words, "")
    if bool(flag.metavar) != bool(value) or value.startswith("--"):
        slug = "flag-value.bare" if not flag.metavar else "flag-value" if value else "flag-value.nothing"
        raise UsageError.of(slug, flag=name, value=repr(value), form=flag)
    return flag, value


def _help_lines(keywords: Sequence[Keyword]) -> list[str]:
    width = max(len(str(keyword)) for keyword in keywords) + 3
    return [f"    {keyword!s:<{width}}{keyword.help}" for keyword in keywords]
