"""What the magics take: the line of a cell, the subcommands, help and completion."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import devtrace
from devtrace.api.options import FLAGS, Options
from devtrace.notebook import usage
from devtrace.words.errors import UsageError
from samples import training

HOME = os.path.expanduser("~")
LINES = {
    "an empty line asks for nothing special": ("", Options()),
    "every flag is read": (
        'fit --simulate cuda:2 --max-ops 5_000 --save "my run.devtrace" --html a.html --no-timeline --expect cuda:0',
        Options("fit", "cuda:2", 5000, "my run.devtrace", "a.html", timeline=False, expect="cuda:0"),
    ),
    "a value may follow an equals sign": ("--simulate=cuda:1", Options(simulate="cuda:1")),
    "a plain number of devices is taken": ("--simulate 2", Options(simulate="cuda:2")),
    "simulate alone is one device": ("--simulate", Options(simulate="cuda:1")),
    "simulate with the kind of device is one": ("--simulate cuda", Options(simulate="cuda:1")),
    "simulate before a name is one device": ("--simulate fit", Options("fit", "cuda:1")),
    "simulate before a flag is one device": ("fit --simulate --max-ops 5", Options("fit", "cuda:1", 5)),
    "a name may follow the devices": ("--simulate cuda:2 fit", Options("fit", "cuda:2")),
    "a file may begin with a tilde": (
        "--save ~/a.devtrace --html ~/a.html",
        Options(save=f"{HOME}/a.devtrace", html=f"{HOME}/a.html"),
    ),
    "a backslash is an ordinary character": (r"--save C:\runs\new.devtrace", Options(save=r"C:\runs\new.devtrace")),
    "a hash within a word is no comment": ("--save run#1.devtrace", Options(save="run#1.devtrace")),
    "a hash within quotes is no comment": ('"run # 1"', Options("run # 1")),
    "what follows a lone hash is a comment": ("fit --simulate 2  # two of them", Options("fit", "cuda:2")),
}


@pytest.mark.parametrize(("line", "options"), LINES.values(), ids=LINES)
def test_a_line_of_a_cell_is_read(line: str, options: Options) -> None:
    assert usage.cell_options(line) == options


@pytest.mark.parametrize(
    ("read", "line", "near"),
    [
        (usage.cell_options, "--buget 10%", "--budget"),
        (usage.cell_options, "--simulated 2", "--simulate"),
        (usage.command, "simulat cuda:1", "`%devtrace simulate`"),
    ],
)
def test_a_misspelt_word_leads_to_the_nearest(read: Callable[[str], object], line: str, near: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(line)
    assert str(raised.value).endswith(f"; perhaps {near} was meant.")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--bogus", "unknown-flag: got %%devtrace --bogus; its flags are --simulate cuda:N, --max-ops N, "),
        ("--save", "flag-value: got --save with nothing; it is written --save FILE; "),
        ("--save --html a.html", "flag-value: got --save with '--html'; it is written --save FILE; "),
        ("--no-timeline=yes", "flag-value: got --no-timeline with 'yes'; --no-timeline takes no value; "),
        ("--max-ops many", "max-ops: got --max-ops many; it takes a number above 0; write --max-ops 100000."),
        ("--max-ops 0", "max-ops: got --max-ops 0; "),
        ("--max-ops -5", "max-ops: got --max-ops -5; "),
        ("--expect gpu", "expect-value: got --expect gpu; it takes a device: cpu, cuda, cuda:0, "),
        ("--expect cuda:", "expect-value: got --expect cuda:; "),
        ("a b", "two-names: got the names 'a' and 'b'; %%devtrace takes one name; quote a name of several words: "),
        ('"a', 'open-quote: got %%devtrace "a; a quote that begins must end; write "a name" or "a/path".'),
    ],
)
def test_a_bad_line_of_a_cell_is_one_sentence(line: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        usage.cell_options(line)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("simulate cuda:2", ("simulate", "cuda:2")),
        ("report", ("report", "")),
        ('save "my run.devtrace"', ("save", "my run.devtrace")),
        ("on --simulate cuda:2", ("on", "cuda:2")),
        ("on --simulate", ("on", "cuda:1")),
        ("on # from here on", ("on", "")),
        ("", ("status", "")),
    ],
)
def test_a_subcommand_comes_with_its_argument_and_none_is_status(line: str, command: tuple[str, str]) -> None:
    assert usage.command(line) == command


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "of",
            "unknown-command: got %devtrace of; it takes on [--simulate cuda:N], off, status, check, report [name], ",
        ),
        ("--save x", "unknown-command: got %devtrace --save; "),
        ("save", "command-argument: got %devtrace save; the form is %devtrace save [--case] FILE; "),
        ("on now", "command-argument: got %devtrace on now; the form is %devtrace on [--simulate cuda:N]; "),
        ("simulate", "command-argument: got %devtrace simulate; the form is %devtrace simulate cuda:N | off; "),
        ("report a b", "command-argument: got %devtrace report a b; the form is %devtrace report [name]; "),
    ],
)
def test_a_bad_subcommand_is_one_sentence(line: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        usage.command(line)
    assert str(raised.value).startswith(message)


def test_a_flag_of_the_cell_magic_given_to_the_line_magic_gets_its_own_sentence() -> None:
    with pytest.raises(UsageError, match="put a second % before it to trace a cell"):
        usage.command("--save x")


def test_help_names_every_flag_and_subcommand() -> None:
    text = usage.help_text()
    assert [str(row) for row in (*FLAGS, *usage.COMMANDS) if f"    {row} " not in text] == []


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("%devtrace s", ["status", "save", "simulate"]),
        ("%devtrace simulate ", ["cuda:1", "cuda:2", "off"]),
        ("%devtrace report f", ["fit"]),
        ("%devtrace on ", []),
        ("%%devtrace --s", ["--simulate", "--save", "--sarif"]),
        ("%%devtrace --save a.devtrace --s", ["--simulate", "--sarif"]),
        ("%%devtrace --simulate ", ["cuda:1", "cuda:2"]),
        ("%%devtrace --save ", []),
    ],
)
def test_the_next_word_is_offered(line: str, offers: list[str]) -> None:
    assert usage.completions(line, ["fit", "7"]) == offers


def cell(text: str) -> list[str]:
    return text.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%%devtrace\nx\ny", "# %%devtrace\nx\ny"),
        ("%%devtrace name --simulate cuda:2\nx", "# %%devtrace name --simulate cuda:2\nx"),
        ("# a remark\n\n%%devtrace\nx", "# a remark\n\n# %%devtrace\nx"),
        ("%%devtrace\n%%time\nx", "%%time\nx"),
        ("%%devtrace\n\n%%time\nx", "%%time\nx"),
        ("%%devtrace", "# %%devtrace"),
        ("%%devtraces\nx", "%%devtraces\nx"),
        ("%%devtrace?", "%%devtrace?"),
        ("x\n%%devtrace\ny", "x\n%%devtrace\ny"),
        ("%devtrace on", "%devtrace on"),
        ("", ""),
    ],
)
def test_the_magic_line_goes_and_every_other_line_keeps_its_number(before: str, after: str) -> None:
    assert "".join(usage.without_magic(cell(before))) == after


def test_the_body_of_each_magic_of_a_cell_begins_below_it() -> None:
    assert dict(usage.bodies(cell("%%devtrace\n%%time\n\nx\n"))) == {"devtrace": 1, "time": 3}
    assert dict(usage.bodies(cell("x\n"))) == {}


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        (devtrace.diagnose, "diagnose(Linear); it takes a trace; give it recording.trace, or devtrace.load("),
        (devtrace.load, "load(Linear); it takes the name of a file; save a trace with trace.save(file)"),
        (devtrace.explain, "explain(Linear); it takes an exception; leave the argument out"),
        (partial(devtrace.diff, "a.devtrace"), "diff(Linear); it takes two traces, reports, files or names"),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(
    call: Callable[[Any], object], refused: str, folder: Path
) -> None:
    training(1).save("a.devtrace")
    with pytest.raises(UsageError) as error:
        call(torch.nn.Linear(2, 2))
    assert str(error.value).startswith(f"wrong-argument: got devtrace.{refused}")
