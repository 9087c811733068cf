"""The magics in a real IPython shell: a traced cell behaves as without devtrace, and shows its report."""

from __future__ import annotations

import gc
import linecache
import os
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import IPython
import pytest
import torch
from IPython.core.completer import provisionalcompleter
from torch._C import _len_torch_dispatch_stack

import devtrace
import documents
from devtrace.api import options
from devtrace.notebook import cells, commands, display_language, magic, usage
from devtrace.report import renderer
from devtrace.report.mime import MIME_TYPE
from failing import culprit_of, edits_of
from shells import Ran, Shell, new_shell


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell without devtrace."""
    with new_shell() as shell:
        yield shell


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A shell with devtrace loaded and a tensor x of three ones."""
    assert bare.run("%load_ext devtrace").error is None
    bare.run("import torch", "x = torch.ones(3)")
    return bare


def lines_of(error: BaseException | None) -> list[tuple[str, int, str]]:
    """Return the user's view of a traceback: file, line and function of each frame below IPython's."""
    assert error is not None
    frames = traceback.extract_tb(error.__traceback__)
    return [(frame.filename, frame.lineno or 0, frame.name) for frame in frames if "IPython" not in frame.filename]


def sites(shell: Shell) -> list[tuple[int | None, int, str]]:
    """Cell, line and text of each op's site in the last trace."""
    sites = [op.site for op in shell.traced[-1].trace.ops]
    return [(site.cell, site.line, site.text) for site in sites if site is not None]


# Loading and unloading.


def test_an_older_ipython_as_colabs_has_no_names_for_completing_and_silencing() -> None:
    old = "from IPython.core import completer, magic\ndel completer.context_matcher, magic.output_can_be_silenced\n"
    runs = "from shells import new_shell\nwith new_shell() as shell:\n"
    cells = '    shell.run("%load_ext devtrace"), print(shell.run("%%devtrace", "1 + 1").text)\n'
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", old + runs + cells]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=paths)
    assert "no op ran" in done.stdout


def left_in(shell: Shell) -> dict[str, Any]:
    """All that an extension could leave in IPython, Python and torch."""
    ip = shell.ip
    return {
        "transformers": list(ip.input_transformers_cleanup),
        "ast": list(ip.ast_transformers),
        "events": {event: list(calls) for event, calls in ip.events.callbacks.items()},
        "magics": {kind: set(magics) for kind, magics in ip.magics_manager.magics.items()},
        "matchers": list(ip.Completer.custom_matchers),
        "showtraceback": vars(ip).get("showtraceback"),
        "handlers": (ip.custom_exceptions, ip.CustomTB),
        "finders": list(sys.meta_path),
        "threads": (threading.Thread, vars(threading.Thread).copy()),
        "module": vars(torch.nn.Module).copy(),
        "hooks": [
            dict(hooks)
            for name, hooks in vars(torch.nn.modules.module).items()
            if name.startswith("_global_") and isinstance(hooks, dict)
        ],
        "modes": _len_torch_dispatch_stack(),
        "cuda": (torch.cuda.is_available, torch.cuda.is_available()),
        "loaded": ip in magic.extensions,
    }


def test_ipython_7_that_answers_for_no_name_of_a_cell_loads_it(bare: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("IPython.core.compilerop.CachingCompiler.format_code_name", raising=False)
    assert bare.run("%load_ext devtrace").error is None


def test_unloading_leaves_nothing(bare: Shell) -> None:
    before = left_in(bare)
    bare.run("%load_ext devtrace")
    assert left_in(bare) != before
    bare.run("import torch", "x = torch.ones(3)")
    for way in ("on", "simulate cuda:2", "simulate off", "simulate cuda:2"):
        bare.run(f"%devtrace {way}")
    bare.run("%%devtrace", "x + 1")
    bare.run("%%devtrace --bogus", "x + 1")
    bare.run("%%devtrace", "raise KeyboardInterrupt")
    bare.run("%unload_ext devtrace")
    after = left_in(bare)
    assert [key for key in before if before[key] != after[key]] == []


def test_unloading_in_the_midst_of_a_traced_cell_ends_the_trace(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "y = x + 1", "%unload_ext devtrace", "y")
    assert ran.error is None
    assert _len_torch_dispatch_stack() == 0
    assert ran.reports == []


def test_reloading_works_and_traces_once(shell: Shell) -> None:
    shell.run("%reload_ext devtrace")
    assert len(shell.run("%%devtrace", "x + 1").reports) == 1


def test_loading_twice_changes_nothing(shell: Shell) -> None:
    before = left_in(shell)
    shell.run("%load_ext devtrace")
    assert left_in(shell) == before


def test_loading_enters_no_dispatch_mode(shell: Shell) -> None:
    assert _len_torch_dispatch_stack() == 0
    shell.run("modes = torch._C._len_torch_dispatch_stack()")
    assert shell.ns["modes"] == 0


def test_the_environment_can_ask_for_simulated_devices(bare: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTRACE_SIMULATE", "cuda:2")
    bare.run("%load_ext devtrace")
    assert bare.run("import torch", "torch.cuda.device_count()").value == 2
    bare.run("%unload_ext devtrace")
    assert not torch.cuda.is_available()


def test_a_wrong_environment_is_one_sentence_and_loads_nothing(bare: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    before = left_in(bare)
    monkeypatch.setenv("DEVTRACE_SIMULATE", "tpu:9")
    ran = bare.run("%load_ext devtrace")
    assert ran.stderr.startswith("UsageError: simulate-devices: got 'tpu:9'; ")
    assert not ran.result.success
    after = left_in(bare)
    assert [key for key in before if before[key] != after[key]] == []


# What the light hooks see.


def test_the_lines_of_cells_that_were_not_traced_explain_the_failure(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("model = torch.nn.Sequential()", "model.body = torch.nn.Linear(3, 3)")
    shell.run("there = torch.device('cuda')", "model.to(there)")
    moved = shell.count
    shell.run("", "model.head = torch.nn.Linear(3, 2)")
    born = shell.count
    ran = shell.run("%%devtrace", "model(torch.ones(1, 3, device='cuda'))")
    text = ran.reports[0]["text/plain"]
    assert f"Created    In[{born}] line 2" in text
    assert f"Missed by  In[{moved}] line 2" in text
    assert "Fix        move it as you attach it: `model.head = torch.nn.Linear(3, 2).to(there)`" in text


def born_of_the_last(shell: Shell) -> tuple[str, str, str]:
    """Birth, certainty and message of the last finding's culprit."""
    (finding,) = shell.traced[-1].report.findings
    born = culprit_of(finding).born
    return f"{born} {born.text}" if born else "", culprit_of(finding).certainty, finding.message


def test_the_birth_of_what_an_untraced_cell_made_is_where_its_source_makes_it(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("mask = torch.zeros(3)")
    shell.run(
        "g = torch.ones(3, device='cuda')", "mask = torch.rand(3)  # again", "if g.is_cuda:", "    def f(): mask = 0"
    )
    count = shell.count
    shell.run("%%devtrace", "g * mask")
    born, certainty, message = born_of_the_last(shell)
    assert born == f"In[{count}] line 2 mask = torch.rand(3)"
    assert certainty == "inferred"
    assert "Probably nothing moved it" in message


def test_an_attribute_of_a_module_of_an_untraced_cell_is_born_in_its_class(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run(
        "class Net(torch.nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.body = torch.nn.Linear(3, 3)",
        "        self.scale = torch.ones(3)",
        "    def forward(self, x):",
        "        return self.body(x) * self.scale",
    )
    count = shell.count
    shell.run("net = Net().to('cuda')")
    shell.run("%%devtrace", "net(torch.ones(3, device='cuda'))")
    assert born_of_the_last(shell)[:2] == (f"In[{count}] line 5 self.scale = torch.ones(3)", "inferred")
    shell.run("net.scale = torch.zeros(3)")
    count = shell.count
    shell.run("%%devtrace", "net(torch.ones(3, device='cuda'))")
    assert born_of_the_last(shell)[:2] == (f"In[{count}] line 1 net.scale = torch.zeros(3)", "inferred")


@pytest.mark.parametrize(
    "made",
    [
        ["mask = other"],
        ["for mask in [torch.rand(3)]: pass"],
        ["import contextlib", "with contextlib.nullcontext(torch.rand(3)) as mask: pass"],
        ["globals()['mask'] = torch.rand(3)"],
        ["mask = [other][0]"],
    ],
)
def test_no_birth_is_named_where_the_source_does_not_show_one(shell: Shell, made: list[str]) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("g = torch.ones(3, device='cuda')", "other = torch.rand(3)")
    shell.run(*made)
    shell.run("%%devtrace", "g * mask")
    assert born_of_the_last(shell)[:2] == ("", "seen")


def test_what_the_traced_cell_itself_made_unrecorded_is_not_taken_for_an_earlier_one(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("g = torch.ones(3, device='cuda')", "mask = torch.rand(3)")
    shell.run("%%devtrace", "mask = torch.frombuffer(bytearray(12), dtype=torch.float32)", "g * mask")
    assert "mask = torch.rand(3)" not in born_of_the_last(shell)[0]


# A traced cell.


def test_a_traced_cell_shows_its_report_as_our_type_html_and_text(shell: Shell) -> None:
    (report,) = shell.run("%%devtrace", "y = x + 1").reports
    assert report[MIME_TYPE]["format"] == "devtrace"
    assert "text/html" in report
    assert "1 op" in report["text/plain"]


def test_the_last_expression_displays_and_is_kept(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "x + 1", "x * 2")
    count = shell.count
    assert f"Out[{count}]: tensor([2., 2., 2.])" in ran.stdout
    assert shell.ns["_"] is ran.value is shell.ns["Out"][count]


def test_a_semicolon_still_keeps_the_value_from_showing(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "x * 2;")
    assert "Out[" not in ran.stdout
    assert len(ran.reports) == 1


def test_each_op_is_on_its_line_of_the_cell(shell: Shell) -> None:
    shell.run("%%devtrace", "y = x + 1", "", "z = (y *", "     2)")
    count = shell.count
    assert [(cell, line) for cell, line, _ in sites(shell)] == [(count, 2), (count, 4)]


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("%%devtrace", 2),
        ("\n  \n%%devtrace", 4),
        ("# what this does\n\n%%devtrace", 4),
        ("%%devtrace\n%%time", 3),
        ("%%devtrace\n\n%%time\n", 5),
        ("%%time\n%%devtrace", 3),
        ("%%devtrace\n%%capture", 3),
        ("%%devtrace\n%%capture\n%%time", 4),
        ("%%devtrace\n%%timeit -n1 -r1", 3),
    ],
)
def test_lines_are_counted_as_the_editor_counts_them(shell: Shell, above: str, line: int) -> None:
    ran = shell.run(above, "y = x + 1", "y")
    assert ran.error is None
    assert len(ran.reports) == 1
    assert sites(shell)[0] == (shell.count, line, "x + 1")


def test_a_line_that_times_one_call_is_itself_the_site(shell: Shell) -> None:
    shell.run("%%devtrace", "1 + 1", "%time y = x + 1")
    assert [line for _, line, _ in sites(shell)] == [3]


def test_a_cell_may_await(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "import asyncio", "async def f():", "    return x + 1", "await f()")
    assert ran.error is None
    assert torch.equal(ran.value, torch.full((3,), 2.0))
    assert len(shell.traced[-1].trace.ops) == 1


@pytest.mark.parametrize("above", ["%%devtrace fit\n%%time", "%%time\n%%devtrace fit"])
def test_time_below_or_above_devtrace_times_and_gives_the_value(shell: Shell, above: str) -> None:
    ran = shell.run(above, "y = x + 1", "y * 2")
    assert "Wall time" in ran.stdout
    assert torch.equal(ran.value, torch.full((3,), 4.0))
    assert [traced.name for traced in shell.traced] == ["fit"]
    assert len(ran.reports) == 1


def test_capture_below_devtrace_captures_all_but_the_report(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "%%capture out", "print('said')", "x + 1")
    assert len(ran.reports) == 1
    assert "said" not in ran.stdout
    assert "said" in shell.ns["out"].stdout
    assert len(shell.traced[-1].trace.ops) >= 1


def test_capture_above_devtrace_captures_the_report(shell: Shell) -> None:
    ran = shell.run("%%capture out", "%%devtrace", "x + 1")
    assert ran.reports == []
    assert [MIME_TYPE in output.data for output in shell.ns["out"].outputs if "text/html" in output.data] == [True]


@pytest.mark.parametrize(("inner", "ops"), [("y = x + 1", 2), ("", 1)])
def test_a_cell_that_runs_a_cell_even_an_empty_one_is_one_trace(shell: Shell, inner: str, ops: int) -> None:
    ran = shell.run("%%devtrace", f"get_ipython().run_cell({inner!r})", "z = x + 1")
    assert len(ran.reports) == 1
    assert len(shell.traced[-1].trace.ops) == ops


def test_a_generator_is_traced_while_a_traced_cell_draws_from_it(shell: Shell) -> None:
    shell.run("def ones():", "    while True:", "        yield x + 1", "made = ones()")
    defined = shell.count
    shell.run("%%devtrace", "next(made); next(made)")
    shell.run("next(made)")
    assert [(cell, line) for cell, line, _ in sites(shell)] == [(defined, 3)] * 2


def test_modes_that_a_cell_enters_see_what_they_see_without_devtrace(shell: Shell) -> None:
    shell.run("from modes import Functions, Ops")
    body = [
        "with Functions() as functions, Ops() as ops:",
        "    z = (x + 1).relu().view(3, 1)",
        "    n = z.sum().item()",
        "functions.seen + ops.seen",
    ]
    untraced, traced = shell.run(*body), shell.run("%%devtrace", *body)
    assert traced.value == untraced.value != []
    names = [op.name for op in shell.traced[-1].trace.ops]
    assert names == ["aten.add.Tensor", "aten.relu", "aten.view", "aten.sum", "aten._local_scalar_dense"]
    assert _len_torch_dispatch_stack() == torch._C._len_torch_function_stack() == 0


def test_the_same_cell_run_again_is_the_new_cell(shell: Shell) -> None:
    for _ in range(2):
        shell.run("%%devtrace", "y = x + 1")
        assert sites(shell)[0][0] == shell.count


def test_autoreload_works_in_a_traced_cell(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "devtrace_reloaded.py"
    module.write_text("def f(x):\n    return x + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    shell.run("%load_ext autoreload")
    shell.run("%autoreload 2")
    shell.run("import devtrace_reloaded")
    module.write_text("def f(x):\n    # a remark, to change the line\n    return x + 2\n")
    os.utime(module, (1e9, 2e9))
    ran = shell.run("%%devtrace", "devtrace_reloaded.f(x)")
    assert torch.equal(ran.value, torch.full((3,), 3.0))
    assert [line for _, line, _ in sites(shell)] == [3]
    module.write_text("TABLE = [0.5, 2.0]\nROWS = list(range(3))\n\ndef f(x):\n    return x + 3\n")
    os.utime(module, (1e9, 3e9))
    linecache.checkcache(str(module))  # as a traceback does
    shell.run("%%devtrace", "devtrace_reloaded.f(x)")
    assert [text for _, _, text in sites(shell)] in ([""], ["x + 3"])
    del sys.modules["devtrace_reloaded"]


def test_only_a_percent_percent_line_at_the_top_is_the_magic(shell: Shell) -> None:
    ran = shell.run("text = '''", "%%devtrace", "'''")
    assert ran.error is None
    assert ran.reports == []
    assert shell.ns["text"] == "\n%%devtrace\n"


@pytest.mark.parametrize("above", ["", "\n"])
def test_the_magic_on_a_later_line_is_refused_with_its_line_before_the_cell_runs(shell: Shell, above: str) -> None:
    ran = shell.run(f"{above}ran = True", "", "%%devtrace", "x + 1")
    line = 3 + len(above)
    assert ran.text.strip().splitlines()[0].startswith(f"UsageError: magic-line: got %%devtrace on line {line}; ")
    assert "move it to the top of the cell" in ran.text
    assert "ran" not in shell.ns
    assert len(shell.run("%%devtrace", "x + 1").reports) == 1


@pytest.mark.parametrize("above", ["%load_ext devtrace", "%load_ext devtrace\nx = 1"])
def test_the_magic_in_the_cell_that_loads_it_is_answered_with_what_to_do(bare: Shell, above: str) -> None:
    assert "UsageError: magic-line: got %%devtrace on a later line; " in bare.run(above, "%%devtrace", "1").text


def test_the_magic_on_a_later_line_below_time_is_answered_with_what_to_do(shell: Shell) -> None:
    assert "UsageError: magic-line: got %%devtrace on a later line; " in shell.run("%%time", "x", "%%devtrace").text


def test_a_cell_with_nothing_but_the_magic_shows_how_to_trace_the_next(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "# later")
    assert ran.text.strip() == (
        "devtrace: there is no code below `%%devtrace` in this cell; `%devtrace on` traces every following cell"
    )
    assert shell.traced == []


def test_the_magic_on_a_later_line_of_a_branch_that_is_not_taken_stops_nothing(shell: Shell) -> None:
    assert shell.run("if False:", "    %%devtrace", "    pass", "x + 1").error is None


def test_a_lone_line_magic_above_code_says_which_cells_are_traced(shell: Shell) -> None:
    assert "cells that begin with `%%devtrace`" in shell.run("%devtrace", "y = x + 1").stdout


def test_diff_takes_the_names_and_numbers_of_traced_cells(shell: Shell, tmp_path: Path) -> None:
    shell.run("import devtrace")
    shell.run("%%devtrace first", "y = x + 1")
    shell.run("%%devtrace", "y = (x + 1) * 2")
    number = shell.count
    assert shell.run(f"devtrace.diff('first', '{number}').totals").value == ("ops 1 → 2",)
    missing = shell.run("devtrace.diff('first', 'secnod')").error
    assert str(missing).startswith("no-trace: got 'secnod', which is neither a file nor a traced cell; kept are In[")
    shell.run("%unload_ext devtrace")
    assert isinstance(shell.run("devtrace.diff('first', 'second')").error, FileNotFoundError)


# A cell that fails.

FAILING = {
    "an op": ["def f(y):", "    return y + torch.ones(4)", "f(x)"],
    "a module": ["model = torch.nn.Sequential(torch.nn.Linear(4, 4))", "model(x)"],
    "a backward": ["y = torch.ones(3, requires_grad=True) * 2", "y.backward()"],
    "a custom function": [
        "class Odd(torch.autograd.Function):",
        "    @staticmethod",
        "    def forward(ctx, y): return y * 2",
        "    @staticmethod",
        "    def backward(ctx, grad): return grad + torch.ones(7)",
        "Odd.apply(torch.ones(3, requires_grad=True)).sum().backward()",
    ],
    "a move": ["torch.nn.Linear(4, 4).to('nowhere')"],
    "an optimizer": [
        "w = torch.nn.Parameter(torch.ones(3)); w.grad = torch.ones(3)",
        "o = torch.optim.SGD([w], lr=0.1); o.param_groups[0]['lr'] = 'x'",
        "o.step()",
    ],
    "no op at all": ["1 / 0"],
    "a chain": [
        "try:",
        "    x + torch.ones(4)",
        "except RuntimeError as error:",
        "    raise ValueError('no') from error",
    ],
}


@pytest.mark.parametrize("body", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("head", ["%%devtrace", "%%devtrace --simulate cuda:2"])
def test_a_failing_cell_fails_as_without_devtrace_and_shows_its_report(
    shell: Shell, head: str, body: list[str]
) -> None:
    plain = shell.run("# nothing", *body)
    traced = shell.run(head, *body)
    assert plain.error is not None
    assert traced.error is not None
    assert (type(traced.error), str(traced.error)) == (type(plain.error), str(plain.error))
    assert not hasattr(traced.error, "__notes__")
    for a, b in ((plain.error, traced.error), (plain.error.__cause__, traced.error.__cause__)):
        assert (a is None) == (b is None)
        assert a is None or [line[1:] for line in lines_of(a)] == [line[1:] for line in lines_of(b)]
    assert len(traced.reports) == 1
    assert _len_torch_dispatch_stack() == 0


def test_the_shown_traceback_has_no_line_of_ours(shell: Shell) -> None:
    ran = shell.run("%%devtrace --simulate cuda:1", "torch.nn.Linear(2, 2).cuda()(torch.ones(1, 2))")
    assert "Expected all tensors to be on the same device" in ran.stdout
    assert str(Path(devtrace.__file__).parent) not in ran.stdout
    assert "hidden" not in ran.stdout


def test_an_error_in_a_cell_that_is_not_traced_has_no_line_of_ours_either(shell: Shell) -> None:
    ran = shell.run("torch.nn.Linear(2, 2).to('cuda')")
    assert ran.error is not None
    assert str(Path(devtrace.__file__).parent) not in ran.stdout


def test_the_users_own_handler_of_exceptions_is_still_called(shell: Shell) -> None:
    shell.run(
        "def handler(self, etype, value, tb, tb_offset=None):",
        "    print('handled', etype.__name__)",
        "get_ipython().set_custom_exc((ZeroDivisionError,), handler)",
    )
    ran = shell.run("%%devtrace", "1 / 0")
    assert "handled ZeroDivisionError" in ran.stdout
    assert len(ran.reports) == 1


@pytest.mark.parametrize("body", ["def (", "%%time\ndef (", "x +", "await ="])
def test_a_syntax_error_shows_no_report(shell: Shell, body: str) -> None:
    ran = shell.run("%%devtrace", body)
    assert isinstance(ran.error, SyntaxError)
    assert ran.reports == []
    assert _len_torch_dispatch_stack() == 0
    assert len(shell.run("%%devtrace", "x + 1").reports) == 1


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("exec('def (')", SyntaxError),
        ("raise KeyboardInterrupt", KeyboardInterrupt),
        ("raise SystemExit(3)", SystemExit),
    ],
)
def test_whatever_is_raised_in_a_cell_ends_it_and_its_trace(shell: Shell, line: str, error: type[Exception]) -> None:
    ran = shell.run("%%devtrace", "y = x + 1", line)
    assert isinstance(ran.error, error)
    assert len(ran.reports) == 1
    assert _len_torch_dispatch_stack() == 0


def test_the_error_of_a_traced_cell_is_not_kept_alive(shell: Shell) -> None:
    shell.run("import weakref", "class Big: pass")
    shell.run(
        "%%devtrace", "def f():", "    big = Big(); global ref; ref = weakref.ref(big)", "    x + torch.ones(4)", "f()"
    )
    shell.ip.last_execution_result = None
    sys.last_value = sys.last_traceback = None
    shell.ip.run_cell("1 / 0")
    gc.collect()
    assert shell.ns["ref"]() is None


# run_cell_magic.


def test_run_cell_magic_traces_and_gives_the_value(shell: Shell) -> None:
    ran = shell.run("value = get_ipython().run_cell_magic('devtrace', 'fit', 'y = x + 1\\ny * 2')")
    assert torch.equal(shell.ns["value"], torch.full((3,), 4.0))
    assert len(ran.reports) == 1
    assert [traced.name for traced in shell.traced] == ["fit"]


def test_an_error_in_run_cell_magic_is_the_cells_and_the_report_is_shown(shell: Shell) -> None:
    ran = shell.run("get_ipython().run_cell_magic('devtrace', '', 'x + torch.ones(4)')")
    assert isinstance(ran.error, RuntimeError)
    assert len(ran.reports) == 1
    assert str(Path(devtrace.__file__).parent) not in ran.stdout


def test_a_bad_flag_in_run_cell_magic_is_a_usage_error(shell: Shell) -> None:
    ran = shell.run("get_ipython().run_cell_magic('devtrace', '--bogus', 'ran = True')")
    assert ran.stderr.startswith("UsageError: unknown-flag: got %%devtrace --bogus; ")
    assert "ran" not in shell.ns


def test_a_trace_within_a_trace_is_refused_in_a_sentence(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "get_ipython().run_cell_magic('devtrace', '', 'x + 1')")
    assert "UsageError: nested-trace: got %%devtrace within a traced cell; " in ran.stderr
    assert len(ran.reports) == 1


# The flags.


def test_a_file_that_cannot_be_written_is_a_line_after_the_report(shell: Shell) -> None:
    ran = shell.run("%%devtrace --save /proc/all.devtrace", "y = x + 1")
    assert ran.error is None
    assert len(ran.reports) == 1
    assert ran.stderr == (
        "devtrace: not-written: got /proc/all.devtrace: No such file or directory; "
        "the trace goes to a file; name another.\n"
    )
    assert (
        "UsageError: not-written: got /nowhere/at/all.devtrace"
        in shell.run("%devtrace save /nowhere/at/all.devtrace").stderr
    )


@pytest.mark.parametrize("flag", ["--save", "--html"])
@pytest.mark.parametrize("above", ["", "%%time\n"])
def test_a_file_in_a_folder_that_is_not_there_is_refused_before_the_cell_runs(
    shell: Shell, flag: str, above: str
) -> None:
    ran = shell.run(f"{above}%%devtrace {flag} /nowhere/at/all.file", "ran = True")
    assert f"UsageError: folder-missing: got {flag} /nowhere/at/all.file; there is no folder /nowhere/at;" in ran.text
    assert "mkdir -p /nowhere/at" in ran.text
    assert "ran" not in shell.ns
    assert len(shell.run("%%devtrace", "y = x + 1").reports) == 1


def test_values_of_flags_may_be_variables(shell: Shell, tmp_path: Path) -> None:
    shell.ns["folder"] = str(tmp_path)
    shell.run("%%devtrace --save {folder}/run.devtrace", "y = x + 1")
    assert (tmp_path / "run.devtrace").exists()


def test_simulated_devices_are_there_for_the_cell_alone(shell: Shell) -> None:
    ran = shell.run("%%devtrace --simulate cuda:2", "torch.cuda.device_count(), str(x.cuda(1).device)")
    assert ran.value == (2, "cuda:1")
    assert "cuda:1" in list(shell.traced[-1].trace.devices)
    assert not torch.cuda.is_available()


def test_a_number_of_devices_is_taken_wherever_they_are_asked_for(shell: Shell) -> None:
    assert shell.run("%%devtrace --simulate 2", "torch.cuda.device_count()").value == 2
    printed = shell.run("%devtrace simulate 3").stdout
    assert printed == "devtrace: cuda:0, cuda:1 and cuda:2 are simulated until `%devtrace simulate off`\n"
    assert shell.run("%%devtrace --simulate 3", "torch.cuda.device_count()").value == 3
    assert "cuda:0, cuda:1 and cuda:2 (cuda:3)" in shell.run("%devtrace status").stdout
    shell.run("%devtrace simulate 1")
    assert "cuda:0 (cuda:1)" in shell.run("%devtrace status").stdout


@pytest.mark.parametrize("line", ["%devtrace simulate cuda:0", "%%devtrace --simulate 0\n1"])
def test_which_device_is_not_taken_for_how_many(shell: Shell, line: str) -> None:
    assert "is how many devices there are, not which one; for one device, named cuda:0, write cuda:1." in (
        shell.run(line).text
    )


def test_a_cell_with_devices_of_its_own_names_what_it_left_on_them_and_how_to_go_on(shell: Shell) -> None:
    ran = shell.run(
        "%%devtrace --simulate cuda:2", "net = torch.nn.Linear(3, 3).to('cuda:1')", "z, _hidden = x.cuda(), x.cuda()"
    )
    note = (
        "net and z are left on cuda:0 and cuda:1, simulated for this cell only; to go on in other cells, type "
        "`%devtrace simulate cuda:2`"
    )
    assert note in " ".join(ran.reports[0]["text/plain"].split())
    assert note in " ".join(str(shell.run("%devtrace report").value).split())
    failed = shell.run("%%devtrace", "z + 1")
    assert "; `%devtrace simulate cuda:2` (in a program " in str(failed.error)
    shell.run("%devtrace simulate cuda:2")
    assert shell.run("str((z + 1).device)").value == "cuda:0"
    assert "left on" not in shell.run("%%devtrace --simulate cuda:2", "w = z + 1").text


def test_a_cell_whose_devices_nothing_ran_on_shows_how_the_notebook_would_run_on_them(shell: Shell) -> None:
    chosen = "device = 'cuda' if torch.cuda.is_available() else 'cpu'"
    shell.run(chosen)
    ran = shell.run("%%devtrace --simulate 1", "y = x.to(device) + 1")
    note = "no op of this cell ran on a simulated device: what earlier cells made, and a device that they chose, are"
    report = " ".join(ran.reports[0]["text/plain"].split())
    assert note in report
    assert "type `%devtrace simulate cuda:1` and run them again" in report
    shell.run("%devtrace simulate 1")
    shell.run(chosen)
    assert "no op of this cell" not in shell.run("%%devtrace --simulate 1", "y = x.to(device) + 1").text
    shell.run("%devtrace simulate off")
    assert "no op of this cell" not in shell.run("%%devtrace --simulate 1", "z = 1").text


def test_a_cell_that_leaves_nothing_on_its_devices_does_not_mention_them(shell: Shell) -> None:
    assert "left on" not in shell.run("%%devtrace --simulate cuda:1", "y = x.cuda().cpu()").text


def test_a_simulation_that_is_already_on_is_used(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:2")
    assert shell.run("%%devtrace --simulate cuda:2", "x.cuda(1)").error is None
    assert [device.simulated for device in shell.traced[-1].trace.devices] == [False, True]
    assert torch.cuda.is_available()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%%devtrace --bogus", "UsageError: unknown-flag: got %%devtrace --bogus; "),
        ("%%devtrace --max-ops none", "UsageError: max-ops: got --max-ops none; "),
        ("%%devtrace --simulate tpu:9", "UsageError: simulate-devices: got 'tpu:9'; "),
        ("%%devtrace --bogus\n%%time", "UsageError: unknown-flag: got %%devtrace --bogus; "),
        ("%%time\n%%devtrace --bogus", "UsageError: unknown-flag: got %%devtrace --bogus; "),
    ],
)
def test_a_line_that_cannot_be_followed_is_one_sentence_and_runs_nothing(shell: Shell, line: str, message: str) -> None:
    ran = shell.run(line, "ran = True")
    lines = [each for each in (ran.stdout + ran.stderr).splitlines() if not each.startswith(("CPU times", "Wall time"))]
    assert len(lines) == 1
    assert lines[0].startswith(message)
    # The %%time of IPython 8 shows an error and goes on.
    assert not ran.result.success or (line.startswith("%%time") and IPython.version_info[0] == 8)
    assert "ran" not in shell.ns
    assert shell.ip.ast_transformers == []
    assert len(shell.run("%%devtrace", "x + 1").reports) == 1


def test_more_ops_than_max_ops_are_folded(shell: Shell) -> None:
    shell.run("%%devtrace --max-ops 50", "for i in range(200):", "    y = x + 1")
    assert len(shell.traced[-1].trace.ops) <= 50
    assert sum(sum(row.ops) for row in shell.traced[-1].trace.ledger) == 200


# The line magic.


def test_on_traces_every_following_cell_and_off_ends_it(shell: Shell) -> None:
    shell.run("%devtrace on")
    shell.run("y = x + 1")
    shell.run("y = x + 2")
    shell.run("%devtrace off")
    shell.run("y = x + 3")
    assert len(shell.traced) == 2


def test_on_prints_a_line_for_a_clean_cell_on_a_device_and_nothing_for_one_that_touched_none(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("%devtrace on")
    (line,) = shell.run("y = x.to('cuda') + 1").displayed
    assert set(line) == {"text/plain"}
    assert line["text/plain"].startswith(f"devtrace In[{shell.count}]   ✓ No device problems: 2 ops")
    for text in ("n = 1", "y = x + 1", "x.undefined"):
        assert shell.run(text).displayed == []


def test_a_cell_on_a_device_that_failed_of_something_else_has_a_neutral_line(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("%devtrace on")
    (line,) = shell.run("y = x.to('cuda')\n[][1]").displayed
    label = f"In[{shell.count}]"
    assert line["text/plain"] == f"devtrace {label}   IndexError in {label} line 2; no device had a part in it."


TRAINING = (
    "model = torch.nn.Linear(2, 2)",
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    "for _ in range(60):",
    "    model(torch.ones(3, 2)).sum().backward()",
    "    optimizer.step()",
)


def test_while_on_a_long_loop_is_recorded_with_a_budget_and_in_full_where_the_cell_asks_for_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(magic, "STANDING_BUDGET", 0.1)  # as from Python 3.12 on
    shell.run("%devtrace on")
    shell.run(*TRAINING)
    shell.run("%%devtrace", *TRAINING)
    standing, asked = (traced.report for traced in shell.traced)
    assert any("counted as repeating them" in note for note in standing.notes)
    assert not any("counted as repeating them" in note for note in asked.notes)
    assert [sum(row.ops.values()) for row in standing.ledger] == [sum(row.ops.values()) for row in asked.ledger]


def test_a_cell_with_the_magic_is_traced_once_while_on(shell: Shell) -> None:
    shell.run("%devtrace on")
    for cell in (["%%devtrace mine", "y = x + 1"], ["%%time", "%%devtrace mine", "y = x + 1"]):
        ran = shell.run(*cell)
        assert len(ran.reports) == 1
        assert shell.traced[-1].name == "mine"
    assert len(shell.traced) == 2


def test_report_shows_a_kept_trace_by_name_by_number_or_the_last(shell: Shell) -> None:
    shell.run("%%devtrace first", "y = x + 1")
    first = shell.count
    shell.run("%%devtrace", "y = x + 1", "y = x + 1")
    assert "1 op " in str(shell.run("%devtrace report first").value)
    assert "1 op " in str(shell.run(f"%devtrace report {first}").value)
    assert "2 ops " in str(shell.run("%devtrace report").value)


def test_a_report_is_a_value_that_shows_itself_where_a_cell_ends_with_it(shell: Shell) -> None:
    shell.run("%%devtrace first", "x = torch.ones(2)")
    assert shell.run("report = %devtrace report first", "report.findings").value == ()
    data, _ = shell.run("%devtrace report first").value._repr_mimebundle_()
    assert data[MIME_TYPE]["format"] == "devtrace"
    assert data["text/plain"] == shell.ip.user_ns["report"].text


def test_a_report_that_is_not_there_is_one_sentence(shell: Shell) -> None:
    assert "UsageError: no-trace: got no traced cell; " in shell.run("%devtrace report").stderr
    shell.run("%%devtrace fit", "x + 1")
    ran = shell.run("%devtrace report fti")
    assert "UsageError: no-trace: got %devtrace report fti; kept are In[" in ran.stderr
    assert "] fit; " in ran.stderr


def test_save_writes_the_last_trace(shell: Shell, tmp_path: Path) -> None:
    shell.run("%%devtrace fit", "y = x + 1")
    ran = shell.run(f'%devtrace save "{tmp_path}/kept.devtrace"')
    assert "fit is in" in ran.stdout
    assert len(devtrace.load(tmp_path / "kept.devtrace").ops) == 1


def test_status_lists_what_is_traced_simulated_and_kept(shell: Shell) -> None:
    shell.run("%devtrace on")
    shell.run("%devtrace simulate cuda:3")
    shell.run("%%devtrace fit", "y = x + 1")
    ran = shell.run("%devtrace status")
    assert "every cell" in ran.stdout
    assert "cuda:3" in ran.stdout
    assert "fit" in ran.stdout


def test_devices_lists_names_by_device_and_the_findings_of_all_cells(shell: Shell) -> None:
    assert "No cell has been traced yet." in shell.run("%devtrace devices").displayed[-1]["text/plain"]
    shell.run("%devtrace simulate cuda:1")
    shell.run("model = torch.nn.Linear(3, 2).cuda()", "model.bias = torch.nn.Parameter(torch.ones(2))")
    shell.run("%%devtrace", "model(x.cuda())")
    shown = shell.run("%devtrace devices").displayed[-1]
    shell.run("%devtrace simulate off")
    lines = [" ".join(line.split()) for line in shown["text/plain"].splitlines()]
    assert lines[0] == "cpu: 2 tensors, 20 B"
    assert "x Tensor float32 (3,) 12 B" in lines
    assert "model.bias Parameter float32 (2,)" in lines
    at = lines.index("cuda:0 (simulated): 1 tensor, 24 B")
    assert " in use, at most " in lines[at + 1]
    assert "512 B is the parameters of `model`" in lines
    assert any(line.startswith("✗ In[") and "model.bias" in line for line in lines)
    assert "<td>x</td>" in shown["text/html"]


def test_devices_names_no_finding_of_a_run_that_its_cell_has_left_behind(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("%%devtrace", "torch.ones(2).cuda() + torch.ones(2)", id="a")
    assert "torch.ones(2)" in shell.run("%devtrace devices").displayed[-1]["text/plain"]
    shell.run("%%devtrace", "torch.ones(2).cuda() + 1", id="a")
    shown = shell.run("%devtrace devices").displayed[-1]["text/plain"]
    shell.run("%devtrace simulate off")
    assert f"No finding in In[{(shell.count or 0) - 2}]." in shown


def test_renderer_chooses_how_reports_are_sent(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "_chosen", None)
    assert "as our own type with a static picture (auto)" in shell.run("%devtrace renderer").stdout
    assert "the views as a script (script)" in shell.run("%devtrace renderer script").stdout
    assert MIME_TYPE not in shell.run("%%devtrace", "x + 1").displayed[-1]
    shell.run("%devtrace renderer auto")
    assert MIME_TYPE in shell.run("%%devtrace", "x + 1").displayed[-1]
    assert "the form is %devtrace renderer [auto | script | static]" in " ".join(
        shell.run("%devtrace renderer best").stderr.split()
    )


def test_simulate_gives_the_session_devices_and_takes_them_away(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:2")
    assert shell.run("torch.cuda.device_count()").value == 2
    shell.run("%devtrace simulate cuda:4")
    assert shell.run("torch.cuda.device_count()").value == 4
    shell.run("%devtrace simulate off")
    assert shell.run("torch.cuda.is_available()").value is False


def test_a_simulation_that_cannot_be_had_is_one_sentence_and_keeps_the_old_one(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:2")
    assert "UsageError: simulate-devices: got 'mps'; " in shell.run("%devtrace simulate mps").stderr
    assert shell.run("torch.cuda.device_count()").value == 2


@pytest.mark.parametrize("line", ["%devtrace simulate cuda:1", "%devtrace simulate off"])
def test_devices_do_not_come_or_go_within_a_traced_cell(shell: Shell, line: str) -> None:
    shell.run("%devtrace simulate cuda:2")
    ran = shell.run("%%devtrace", "y = x + 1", line)
    assert "UsageError: nested-trace: got %devtrace simulate" in ran.stderr
    assert shell.run("torch.cuda.device_count()").value == 2


def test_help_prints_every_flag_and_subcommand(shell: Shell) -> None:
    assert shell.run("%devtrace help").stdout.strip() == usage.help_text().strip()


def test_question_marks_show_the_same_help(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for ask in ("%%devtrace?", "%devtrace?"):
        ran = shell.run(ask)
        shown = ran.stdout + "".join(data["text/plain"] for data in ran.displayed)
        assert [row.name for row in (*options.FLAGS, *usage.COMMANDS) if row.name not in shown] == []


def test_the_docs_name_every_flag_and_subcommand() -> None:
    written = [str(flag) for flag in options.FLAGS] + [f"%devtrace {command}" for command in usage.COMMANDS]
    assert [row for row in written if f"`{row}`".replace("|", "\\|") not in documents.ALL] == []


def test_the_docs_have_every_message_of_the_magics() -> None:
    sources = [Path(options.__file__), Path(usage.__file__), Path(cells.__file__), Path(commands.__file__)]
    slugs = {slug for path in sources for slug in re.findall(r'UsageError\.of\(\s*"([a-z-]+)', path.read_text())}
    assert len(slugs) >= 8
    assert [slug for slug in slugs if f"`{slug}`" not in documents.ALL] == []


def offered(shell: Shell, text: str) -> list[str]:
    with provisionalcompleter():
        return [found.text for found in shell.ip.Completer.completions(text, len(text))]


def test_the_tab_key_offers_flags_subcommands_and_names(shell: Shell) -> None:
    shell.run("%%devtrace fit", "y = x + 1")
    assert offered(shell, "%%devtrace --s") == ["--simulate", "--save", "--sarif"]
    assert offered(shell, "%%devtrace --simulate cuda:") == ["cuda:1", "cuda:2"]
    assert offered(shell, "%devtrace si") == ["simulate"]
    assert offered(shell, "%devtrace simulate o") == ["off"]
    assert offered(shell, "%devtrace report f") == ["fit"]
    assert "%%devtrace" in offered(shell, "%%devt")
    assert "--simulate" not in offered(shell, "x.")


# Faults of ours.


NOT_TO_ITS_END = "devtrace: this cell was not traced to its end: "


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("devtrace.api.recording.record", RuntimeError("broken"), f"{NOT_TO_ITS_END}RuntimeError: broken\n"),
        ("devtrace.recording.recording.Assembly", KeyboardInterrupt(), f"{NOT_TO_ITS_END}KeyboardInterrupt: \n"),
        ("devtrace.report.mime.mime_bundle", RuntimeError("broken"), f"{NOT_TO_ITS_END}RuntimeError: broken\n"),
    ],
)
def test_a_fault_of_ours_or_an_interrupt_of_our_work_is_a_line_and_the_cell_runs_on(
    shell: Shell, name: str, error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    run = vars(torch.nn.Module)["__call__"]
    monkeypatch.setattr(name, broken)
    ran = shell.run("%%devtrace", "ran = x + 1")
    assert ran.result.success
    assert "ran" in shell.ns
    assert ran.stderr == said
    assert _len_torch_dispatch_stack() == 0
    assert vars(torch.nn.Module)["__call__"] is run


# Who else listens.


def test_observers_hear_of_every_change_until_they_stop(shell: Shell) -> None:
    heard: list[str] = []
    stop = shell.tracing.observe(lambda what, traced: heard.append(what if traced is None else f"{what} {traced.name}"))
    shell.run("%devtrace on")
    shell.run("%%devtrace fit", "y = x + 1")
    stop()
    shell.run("%devtrace off")
    # The cell of `off` is not heard of; that of `on` was not traced.
    assert heard == ["switched", "began", "finished fit"]


def test_an_observer_that_fails_is_left_out_and_the_trace_goes_on(shell: Shell) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken view")

    shell.tracing.observe(broken)
    ran = shell.run("%%devtrace", "y = x + 1")
    assert len(ran.reports) == 1
    assert ran.stderr == "devtrace: a view of this notebook failed and is updated no more: RuntimeError: broken view\n"


def test_the_recording_can_be_looked_at_while_the_cell_runs(shell: Shell) -> None:
    shell.ns["tracing"] = shell.tracing
    shell.run("%%devtrace", "seen = tracing.run.recording", "y = x + 1")
    assert shell.ns["seen"] is not None
    assert shell.tracing.run is None


def test_a_cell_that_another_thread_runs_meanwhile_is_not_traced(shell: Shell) -> None:
    seen: list[Ran | None] = [None]
    shell.ns["elsewhere"] = lambda: seen.__setitem__(0, shell.run("%%devtrace other", "y = x + 1"))
    ran = shell.run(
        "%%devtrace mine",
        "import threading",
        "thread = threading.Thread(target=elsewhere); thread.start(); thread.join()",
        "y = x + 1",
    )
    assert ran.error is None
    assert [traced.name for traced in shell.traced] == ["mine"]
    assert seen[0] is not None
    assert str(seen[0].error).startswith("nested-trace: got %%devtrace within a traced cell; ")


def test_save_and_html_write_their_files(shell: Shell, folder: Path) -> None:
    ran = shell.run("%%devtrace fit --save 'a run.devtrace' --html run.html", "y = x + 1")
    assert "the trace is in a run.devtrace" in ran.stdout
    assert "the report is in run.html" in ran.stdout
    trace = devtrace.load(folder / "a run.devtrace")
    assert len(trace.ops) == 1
    assert trace.title == "fit"
    assert "<html" in (folder / "run.html").read_text(encoding="utf-8")


def test_without_a_timeline_the_html_has_no_drawing(shell: Shell) -> None:
    (with_it,) = shell.run("%%devtrace", "y = x + 1").reports
    (without,) = shell.run("%%devtrace --no-timeline", "y = x + 1").reports
    assert "<svg" in with_it["text/html"]
    assert "<svg" not in without["text/html"]


def test_an_expected_device_is_compared_with_every_op(shell: Shell) -> None:
    ran = shell.run("%%devtrace --simulate cuda:1 --expect cuda:0", "y = x + 1")
    assert ran.error is None
    assert "cuda:0" in ran.reports[0]["text/plain"]


def test_on_shows_the_whole_report_where_something_is_wrong(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1")
    shell.run("%devtrace on")
    ran = shell.run("x.cuda() + x")
    assert isinstance(ran.error, RuntimeError)
    (report,) = ran.reports
    assert report["text/plain"].startswith("✗ ")


def test_check_describes_the_environment(shell: Shell) -> None:
    assert torch.__version__ in shell.run("%devtrace check").stdout


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('// Translation\n{\n    // Language of the interface.\n    "locale": "zh_CN"\n}', "zh"),
        ('{"locale": "en"}', "en"),
        ('{"locale": "default"}', None),
        ('{"locale": "fr_FR"}', None),
        ("[]", None),
        ("{", None),
        (None, None),
    ],
)
def test_a_kernel_of_a_jupyter_server_begins_in_its_display_language(
    settings: str | None, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    if settings is not None:
        file.write_text(settings)
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path))
    monkeypatch.setenv("JPY_SESSION_NAME", "a.ipynb")
    assert display_language.chosen() == expected
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert display_language.chosen() is None


def test_numpy_of_what_a_call_gave_is_named_without_a_frame_of_torch(shell: Shell) -> None:
    shell.run("%devtrace simulate cuda:1", "def rows(count):\n    return torch.ones(count, device='cuda:0')")
    for name in ("rows(4)", "rows(4).detach()"):
        shell.run("%%devtrace", f"table = {name}.numpy()")
        finding = shell.traced[-1].report.findings[0]
        assert (finding.rule, culprit_of(finding).name) == ("host-conversion", name)
        assert edits_of(finding) == ["table = rows(4).detach().cpu().numpy()"]
    shell.run("%%devtrace\nstr(rows(4).shape).split(3)")
    assert len(shell.traced) == 3
    assert not shell.traced[-1].report.findings
