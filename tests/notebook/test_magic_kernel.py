"""The magics in a real Jupyter kernel, through the messages that a front end sees, and in a real terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pexpect
import pytest
from nbclient import NotebookClient

import devtrace
from devtrace.contract.findings_json import FINDINGS_TYPE
from devtrace.report.mime import MIME_TYPE
from kernels import LIMIT, Kernel, new_kernel

OURS = str(Path(devtrace.__file__).parent)
TRACING = "devtrace.notebook.magic.extensions[get_ipython()].tracing"


@pytest.fixture(scope="module")
def shared() -> Iterator[Kernel]:
    with new_kernel() as kernel:
        kernel.run("import torch", "x = torch.ones(3)")
        yield kernel


@pytest.fixture
def kernel(shared: Kernel) -> Iterator[Kernel]:
    """A kernel with devtrace just loaded."""
    assert shared.run("%load_ext devtrace").status == "ok"
    yield shared
    shared.run("%unload_ext devtrace")


@pytest.fixture
def unloaded() -> Iterator[Kernel]:
    """A kernel of the test's own, without devtrace."""
    with new_kernel() as kernel:
        yield kernel


@pytest.fixture
def fresh(unloaded: Kernel) -> Kernel:
    """A kernel of the test's own, with devtrace loaded and torch not imported."""
    unloaded.run("%load_ext devtrace")
    return unloaded


def test_the_report_comes_after_the_value_as_one_bundle(kernel: Kernel) -> None:
    sent = kernel.run("%%devtrace", "print('said')", "x * 2")
    assert sent.kinds == ["stream", "execute_result", "display_data"]
    assert sent.result == "tensor([2., 2., 2.])"
    (report,) = sent.reports
    assert set(report) == {MIME_TYPE, FINDINGS_TYPE, "text/html", "text/plain"}
    assert "1 op" in report["text/plain"]


def test_a_failing_cell_sends_the_error_that_it_sends_without_devtrace_and_then_its_report(kernel: Kernel) -> None:
    body = ["model = torch.nn.Sequential(torch.nn.Linear(4, 4))", "model(x)"]
    plain = kernel.run("#%devtrace", *body)
    traced = kernel.run("%%devtrace", *body)
    assert traced.status == plain.status == "error"
    assert (traced.reply["ename"], traced.reply["evalue"]) == (plain.reply["ename"], plain.reply["evalue"])
    assert traced.traceback.splitlines()[3:] == plain.traceback.replace("#%devtrace", "# %%devtrace").splitlines()[3:]
    assert OURS not in traced.traceback
    assert traced.kinds == ["error", "display_data"]
    assert len(traced.reports) == 1


def test_devices_of_a_cell_are_there_until_its_traceback_is_shown(kernel: Kernel) -> None:
    kernel.run("%xmode Verbose")
    body = ["y = x.cuda()", "def f(depth, z):", "    return f(depth - 1, z) if depth else z + x", "f(4, y)"]
    sent = kernel.run("%%devtrace --simulate cuda:1", *body)
    kernel.run("%xmode Context")
    assert "device='cuda:0'" in sent.traceback
    assert "ended" not in sent.traceback


def test_an_awaiting_cell_that_fails_shows_its_report(kernel: Kernel) -> None:
    sent = kernel.run("%%devtrace", "import asyncio", "await asyncio.sleep(0)", "x + torch.ones(4)")
    assert sent.status == "error"
    assert len(sent.reports) == 1


@pytest.mark.parametrize(
    "wait", ["while True: big @ big", "import asyncio\nwhile True: await asyncio.sleep(0); big @ big"]
)
def test_an_interrupt_in_the_midst_of_an_op_ends_the_cell_and_leaves_nothing(kernel: Kernel, wait: str) -> None:
    kernel.run("big = torch.ones(400, 400)")

    def interrupt(output: dict[str, Any]) -> None:
        if output.get("text", "").startswith("go"):  # its newline may come apart
            kernel.manager.interrupt_kernel()

    sent = kernel.run("%%devtrace", "import sys", "print('go', flush=True)", wait, at=interrupt)
    assert sent.status == "error"
    assert sent.reply["ename"] in ("KeyboardInterrupt", "CancelledError")
    assert kernel.run("torch._C._len_torch_dispatch_stack()").result == "0"
    assert len(kernel.run("%%devtrace", "x + 1").reports) == 1


def test_a_bad_flag_fails_the_cell_in_one_sentence_and_does_not_run_it(kernel: Kernel) -> None:
    sent = kernel.run("%%devtrace --bogus", "ran = True")
    assert sent.status == "error"
    assert sent.reply["ename"] == "UsageError"
    assert sent.traceback.startswith("UsageError: unknown-flag: got %%devtrace --bogus; ")
    assert len(sent.traceback.splitlines()) == 1
    assert kernel.run("'ran' in globals()").result == "False"


def test_sites_carry_the_front_ends_id_of_the_cell(kernel: Kernel) -> None:
    kernel.run("%%devtrace", "y = x + 1", cell_id="the-cell")
    site = f"{TRACING}.history.find().trace.ops[0].site"
    kernel.run("import devtrace.notebook.magic")
    assert kernel.run(f"{site}.cell_id, {site}.line").result == "('the-cell', 2)"


def test_a_cell_keeps_its_id_and_its_lines_when_devtrace_is_loaded_again(kernel: Kernel) -> None:
    count = kernel.run("", "def kept(x):", "    return x + 1", cell_id="of-kept").reply["execution_count"]
    kernel.run("%reload_ext devtrace")
    kernel.run("%%devtrace", "y = kept(x)")
    kernel.run("import devtrace.notebook.magic")
    site = f"{TRACING}.history.find().trace.ops[0].site"
    assert kernel.run(f"{site}.cell, {site}.cell_id, {site}.line").result == f"({count}, 'of-kept', 3)"


def test_an_unchanged_cell_run_again_is_counted_anew(kernel: Kernel) -> None:
    kernel.run("import devtrace.notebook.magic")
    for _ in range(2):
        count = kernel.run("%%devtrace", "y = x + 1").reply["execution_count"]
        assert kernel.run(f"{TRACING}.history.find().trace.ops[0].site.cell").result == str(count)


def test_time_and_capture_below_work(kernel: Kernel) -> None:
    timed = kernel.run("%%devtrace", "%%time", "y = x + 1", "y")
    assert timed.result == "tensor([2., 2., 2.])"
    assert "Wall time" in timed.streams
    assert len(timed.reports) == 1
    captured = kernel.run("%%devtrace", "%%capture", "print('said')", "x + 1")
    assert captured.streams == ""
    assert len(captured.reports) == 1


def test_help_is_shown_for_a_question_mark(kernel: Kernel) -> None:
    reply = kernel.run("%%devtrace?").reply
    shown = "".join(page["data"]["text/plain"] for page in reply["payload"])
    assert "--simulate" in shown


def test_loading_imports_no_torch_and_the_first_import_is_traced_from_within(fresh: Kernel) -> None:
    assert fresh.run("import sys", "'torch' in sys.modules").result == "False"
    fresh.run("%devtrace on")
    assert fresh.run("n = 1").outputs == []
    assert fresh.run("'torch' in sys.modules").result == "False"
    sent = fresh.run("%%devtrace", "import torch", "x = torch.ones(3)")
    assert "1 op" in sent.reports[0]["text/plain"]
    # Now that torch is there, a later cell is traced from its first line.
    assert "1 op" in fresh.run("%%devtrace", "y = x + 1").reports[0]["text/plain"]


def test_a_module_made_in_the_cell_that_imports_torch_is_known_to_a_later_trace(fresh: Kernel) -> None:
    fresh.run("import torch", "model = torch.nn.Linear(3, 2)")
    fresh.run("head = model.weight", "model.to('meta')")
    sent = fresh.run("%%devtrace --simulate cuda:1", "torch.nn.Linear(3, 2)(torch.ones(1, 3, device='cuda'))")
    assert sent.status == "error"
    assert "\n  In[4] line 2" in sent.reports[0]["text/plain"]


@pytest.mark.parametrize("first", ["%devtrace simulate cuda:1", "%devtrace on", "import devtrace.recording.recording"])
def test_modules_are_watched_whichever_of_our_modules_imports_torch(first: str, fresh: Kernel) -> None:
    fresh.run(first)
    fresh.run("import torch", "model = torch.nn.Sequential()", "model.append(torch.nn.Linear(3, 2))")
    sent = fresh.run("%%devtrace --simulate cuda:1", "model(torch.ones(1, 3, device='cuda'))")
    assert "model.append(torch.nn.Linear(3, 2))  " in sent.reports[0]["text/plain"]


NET = """

import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(3, 3)
        self.scale = torch.ones(3)

    def forward(self, x):
        return self.body(x) * self.scale"""


def failing_report(kernel: Kernel) -> str:
    kernel.run("%devtrace simulate cuda:1")
    kernel.run("net = Net().to('cuda')")
    (report,) = kernel.run("%%devtrace", "net(torch.ones(3, device='cuda'))").reports
    return str(report["text/plain"])


def test_a_cell_that_ran_before_devtrace_was_loaded_is_named_by_its_number(unloaded: Kernel) -> None:
    unloaded.run("first = 1")
    unloaded.run(NET)
    unloaded.run("%load_ext devtrace")
    report = failing_report(unloaded)
    assert "  In[2] line 11   self.body(x) * self.scale" in report
    assert re.search(r"In\[2\] line 8 +self\.scale = torch\.ones\(3\)", report)
    assert ".py" not in report


def test_the_cell_that_loads_devtrace_is_named_by_its_number(unloaded: Kernel) -> None:
    unloaded.run("%load_ext devtrace", *NET.splitlines())
    assert "  In[1] line 12   self.body(x) * self.scale" in failing_report(unloaded)


def test_what_a_recording_saw_before_devtrace_was_loaded_is_named_by_its_number_afterwards(unloaded: Kernel) -> None:
    unloaded.run("import torch, devtrace", "with devtrace.record():", "    mask = torch.rand(3)")
    unloaded.run("%load_ext devtrace", "%devtrace simulate cuda:1")
    (report,) = unloaded.run("%%devtrace", "torch.ones(3, device='cuda') * mask").reports
    assert "In[1] line 3" in report["text/plain"]


def test_a_cell_that_ran_twice_or_within_capture_before_is_named_by_its_last_run(unloaded: Kernel) -> None:
    unloaded.run("import torch")
    for _ in range(2):
        unloaded.run("def double(x):", "    return x * torch.ones(3)")
    unloaded.run("%%capture", "def half(x):", "    return x / torch.full((3,), 2.0)")
    unloaded.run("%load_ext devtrace", "%devtrace simulate cuda:1")
    (report,) = unloaded.run("%%devtrace", "double(torch.ones(3, device='cuda'))").reports
    assert "  In[3] line 2 " in report["text/plain"]
    (report,) = unloaded.run("%%devtrace", "half(torch.ones(3, device='cuda'))").reports
    assert "  In[4] line 3 " in report["text/plain"]


def test_a_cell_without_torch_reports_that_there_was_nothing_to_trace(fresh: Kernel) -> None:
    sent = fresh.run("%%devtrace", "1 + 1")
    assert sent.result == "2"
    assert sent.streams == "devtrace: torch was not imported, so there was nothing to trace\n"


def test_libraries_that_choose_a_device_at_import_see_the_simulated_ones() -> None:
    with new_kernel(DEVTRACE_SIMULATE="cuda:2") as kernel:
        kernel.run("%load_ext devtrace")
        assert kernel.run("import torch", "torch.cuda.device_count()").result == "2"


ENDS_OF_CLEARED = (
    "",
    "clear_output(wait=True)",
    "print('done')",
    "bar.value += 1",
    "with widget: clear_output(wait=True)\nprint('done')",
    "thread = Thread(target=print, args=('done',)); thread.start(); thread.join()",
    "figures.append('done')",  # as matplotlib's in a notebook, it is shown once the cell has run
)


def test_a_report_clears_nothing_that_the_cell_shows_before_it_waits_to_clear() -> None:
    first = """import torch, ipywidgets
from threading import Thread
from IPython.display import clear_output, display
bar, widget, figures = ipywidgets.IntProgress(), ipywidgets.Output(), []
get_ipython().events.register("post_execute", lambda: [display(figures.pop()) for _ in figures[:]])"""
    start = "print(torch.ones(2, device='cuda'))\ndisplay('a figure')\nclear_output(wait=True)\n"
    cells = [start + end for end in ENDS_OF_CLEARED]
    sources = "%load_ext devtrace", "%devtrace simulate cuda:1", first, *cells, "%devtrace on", *cells
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(book, timeout=LIMIT, coalesce_streams=True).execute()
    for plain, traced in zip(book.cells[3 : -len(cells) - 1], book.cells[-len(cells) :], strict=True):
        *own, ours = traced.outputs
        assert own == plain.outputs
        assert ours.data["text/plain"].startswith("devtrace In[")


# A terminal.


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[pexpect.spawn[str]]:
    """IPython as a person starts it, on a terminal of its own."""
    arguments = ["-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit", "--colors=nocolor"]
    environment = {"IPYTHONDIR": str(tmp_path), "TERM": "dumb"}
    terminal = pexpect.spawn(
        sys.executable,
        arguments,
        env={**os.environ, **environment},
        encoding="utf-8",
        timeout=LIMIT,
        dimensions=(50, 200),
    )
    terminal.expect_exact("In [1]: ")
    yield terminal
    terminal.sendline("exit")
    terminal.expect(pexpect.EOF)
    terminal.close()


def answered(terminal: pexpect.spawn[str], *lines: str, prompt: int) -> str:
    """Type a cell, and read up to the next prompt."""
    for line in lines:
        terminal.sendline(line)
    terminal.expect_exact(f"In [{prompt}]: ")
    return terminal.before or ""


def test_a_terminal_waits_for_the_body_and_prints_the_report_as_text(terminal: pexpect.spawn[str]) -> None:
    answered(terminal, "%load_ext devtrace", prompt=2)
    answered(terminal, "import torch", prompt=3)
    shown = answered(terminal, "%%devtrace", "y = torch.ones(3)", "y * 2", "", "", prompt=4)
    assert "Out[3]: tensor([2., 2., 2.])" in shown
    assert "2 ops" in shown
    failed = answered(terminal, "%%devtrace", "y + torch.ones(4)", "", "", prompt=5)
    assert "RuntimeError" in failed
    assert OURS not in failed
    assert failed.index("RuntimeError") < failed.rindex("op")
    assert "UsageError: unknown-flag" in answered(terminal, "%%devtrace --bogus", "1 / 0", "", "", prompt=6)
