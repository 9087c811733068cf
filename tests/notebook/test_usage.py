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


def test_an_empty_line_asks_for_nothing_special() -> None:
    assert usage.cell_options("") == Options()


def test_every_flag_is_read() -> None:
    line = 'fit --simulate cuda:2 --max-ops 5_000 --save "my run.devtrace" --html a.html --no-timeline --expect cuda:0'
    assert usage.cell_options(line) == Options(
        "fit", "cuda:2", 5000, "my run.devtrace", "a.html", timeline=False, expect="cuda:0"
    )


def test_a_flag_takes_its_value_after_an_equals_sign_too() -> None:
    assert usage.cell_options("--simulate=cuda:1").simulate == "cuda:1"


def test_a_plain_number_of_devices_is_taken() -> None:
    assert usage.cell_options("--simulate 2").simulate == "cuda:2"


@pytest.mark.parametrize(
    ("line", "name", "devices"),
    [
        ("--simulate", "", "cuda:1"),
        ("--simulate cuda", "", "cuda:1"),
        ("--simulate fit", "fit", "cuda:1"),
        ("fit --simulate --max-ops 5", "fit", "cuda:1"),
        ("--simulate cuda:2 fit", "fit", "cuda:2"),
    ],
)
def test_simulate_alone_is_one_device(line: str, name: str, devices: str) -> None:
    options = usage.cell_options(line)
    assert (options.name, options.simulate) == (name, devices)


def test_on_takes_devices_for_the_session() -> None:
    assert usage.command("on --simulate cuda:2") == ("on", "cuda:2")
    assert usage.command("on --simulate") == ("on", "cuda:1")
    with pytest.raises(UsageError, match="command-argument"):
        usage.command("on 3")


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


def test_a_file_may_begin_with_a_tilde() -> None:
    folder = os.path.expanduser("~")
    assert usage.cell_options("--save ~/a.devtrace --html ~/a.html") == Options(
        save=f"{folder}/a.devtrace", html=f"{folder}/a.html"
    )


def test_a_backslash_is_an_ordinary_character() -> None:
    assert usage.cell_options(r"--save C:\runs\new.devtrace").save == r"C:\runs\new.devtrace"


def test_a_hash_within_a_word_is_no_comment() -> None:
    assert usage.cell_options("--save run#1.devtrace").save == "run#1.devtrace"
    assert usage.cell_options('"run # 1"').name == "run # 1"


def test_what_follows_a_lone_hash_is_a_comment() -> None:
    assert usage.cell_options("fit --simulate 2  # two of them") == Options("fit", "cuda:2")
    assert usage.command("on # from here on") == ("on", "")


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


def test_a_subcommand_comes_with_its_argument() -> None:
    assert usage.command("simulate cuda:2") == ("simulate", "cuda:2")
    assert usage.command("report") == ("report", "")
    assert usage.command('save "my run.devtrace"') == ("save", "my run.devtrace")


def test_no_subcommand_is_status() -> None:
    assert usage.command("") == ("status", "")


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
    call: Callable[[Any], object], refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    training(1).save("a.devtrace")
    with pytest.raises(UsageError) as error:
        call(torch.nn.Linear(2, 2))
    assert str(error.value).startswith(f"wrong-argument: got devtrace.{refused}")
