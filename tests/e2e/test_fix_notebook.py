"""Fix the notebook: one press finds all errors, one applies the changes, one runs the cells, one undo takes it back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import nbformat
import pytest
from playwright.sync_api import Locator, TimeoutError, expect

from e2e.lab import Lab
from e2e.notebook import Notebook, wait_for_look
from e2e.second_hour import NOTEBOOKS
from e2e.sidebar import Sidebar, expect_selected
from folders import ROOT

pytestmark = pytest.mark.e2e

ROUNDS: Final = 120_000
"""Milliseconds for the rounds of a small notebook on a busy machine: each starts a kernel and imports torch."""
LOAD: Final = "%load_ext devtrace\n%devtrace simulate cuda:1\nimport torch\nfrom torch import nn\ndevice = 'cuda:0'"
# Three bugs: a head that was attached after the move, a batch that nobody moves, and numpy of a device's tensor.
CELLS: Final = (
    LOAD,
    "net = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).to(device)",
    "net.append(nn.Linear(8, 2))",
    "rows = torch.arange(24.0).view(3, 8)",
    "scores = net(rows)",
    "table = scores.detach().numpy()\nprint('done', table.shape)",
)


class Fix:
    """Drives the part of the panel that fixes the notebook."""

    def __init__(self, notebook: Notebook, link: str = "connected") -> None:
        self.root = Sidebar.open(notebook, link).root.locator("[data-part=fix]")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name)

    def wait(self, *states: str) -> None:
        """Wait for one of some states; where none comes, the failure tells what the panel says instead."""
        wanted = ", ".join(f'.dt-fix-status[data-state="{state}"]' for state in states)
        try:
            self.root.locator(wanted).wait_for(timeout=ROUNDS)
        except TimeoutError as late:
            raise AssertionError(f"expected {states}, got {self.root.inner_html()}") from late

    def prove(self, state: str = "proven") -> None:
        self.button("Fix the notebook").click()
        self.wait(state)

    def run(self) -> None:
        """Run what has changed, and wait until it ran clean."""
        self.button("Run ").click()
        expect(self.root.locator(".dt-fix-after")).to_contain_text("ran clean", timeout=ROUNDS)

    def apply(self) -> None:
        """Put all changes in, and wait until the panel knows that they are."""
        self.button("Apply all changes").click()
        expect(self.button("Apply all changes")).to_have_count(0)


_TEXTS: Final = (
    "() => { const { model } = jupyterapp.shell.currentWidget.content;"
    " return [...model.cells].map(cell => cell.sharedModel.getSource()); }"
)


def texts(notebook: Notebook) -> list[str]:
    return [str(text) for text in notebook.page.evaluate(_TEXTS)]


def expect_undone(notebook: Notebook, fix: Fix, index: int, cells: Sequence[str], button: str) -> None:
    """Expect one undo in a changed cell to take all changes back, and the button to put them in to be there again."""
    notebook.cell(index).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+z")
    expect(fix.button(button)).to_be_visible()
    wait_for_look(notebook.page, _TEXTS, list(cells))


def test_one_press_fixes_all_bugs_one_applies_them_and_one_runs_the_cells_again(lab: Lab) -> None:
    notebook = lab.open("fix-all.ipynb", *CELLS, run="all")
    report = notebook.wait_ready("report")
    finding = report.locator('[data-devtrace="finding"]').first
    expect(finding.get_by_role("button", name="Insert untried")).to_be_visible()
    finding.get_by_role("button", name="Try", exact=True).click()
    tried = "✓ Tried: with this change the error is gone. Next In[5] line 1 fails: net.2.weight and .bias are"
    expect(finding.locator(".dt-fix-status")).to_contain_text(tried, timeout=ROUNDS)
    finding.get_by_role("button", name="Insert", exact=True).click()
    expect(finding.get_by_role("button", name="✓ Inserted")).to_be_visible()
    finding.get_by_role("button", name="Undo").click()
    expect(finding.get_by_role("button", name="Insert", exact=True)).to_be_visible()
    assert texts(notebook) == list(CELLS)
    fix = Fix(notebook)
    report.get_by_role("button", name="Fix the notebook").click()
    fix.wait("proven")
    expect(fix.root.locator(".dt-fix-bug")).to_have_count(2)
    fix.button("In[5] line 1").click()
    expect_selected(notebook.page, "scores = net(rows)")
    expect(fix.root.locator(".dt-fix-status")).to_contain_text("ran as far as In[5] on 1 simulated device")
    expect(fix.root.locator(".dt-fix-status")).to_contain_text("What is below In[5] was not run: “Fix again” runs it")
    fix.button("Fix again").click()
    expect(fix.root.locator(".dt-fix-status")).to_contain_text("ran to its end", timeout=ROUNDS)
    fix.wait("proven")
    expect(fix.root.locator(".dt-fix-bug")).to_have_count(3)
    fix.apply()
    assert texts(notebook) != list(CELLS)
    fix.run()
    expect(fix.root.locator(".dt-fix-bug s")).to_have_count(3)
    expect(notebook.cell(5).locator(".jp-OutputArea-output").first).to_contain_text("done (3, 2)")
    expect_undone(notebook, fix, 4, CELLS, "Apply all changes")


@pytest.mark.breadth
def test_in_a_notebook_opened_afresh_what_the_changed_cells_need_runs_with_them(lab: Lab) -> None:
    cells = (*CELLS[:4], "idle = 'nobody reads it'", *CELLS[4:])
    notebook = lab.open("fix-fresh.ipynb", *cells)
    fix = Fix(notebook, link="absent")
    fix.prove()
    fix.apply()
    expect(fix.root).to_contain_text("need cell 1")
    fix.root.get_by_role("button", name="Run cell 1, cell 2, cell 3, ").click()
    expect(fix.root.locator(".dt-fix-after")).to_contain_text("ran clean", timeout=ROUNDS)
    expect(notebook.cell(6).locator(".jp-OutputArea-output").first).to_contain_text("done (3, 2)")
    expect(fix.root).not_to_contain_text("need cell")
    counts = "() => [...jupyterapp.shell.currentWidget.content.model.cells].map(cell => cell.executionCount)"
    wait_for_look(notebook.page, counts, [1, 2, 3, 4, None, 5, 6])


@pytest.mark.breadth
def test_a_notebook_that_was_changed_meanwhile_is_left_alone_and_a_run_can_be_cancelled(lab: Lab) -> None:
    # No run comes to its end before it is to: neither before it is cancelled, nor before the notebook is changed.
    (lab.server.folder / "changed").unlink(missing_ok=True)
    waits = "import os\nwhile not os.path.exists('changed'): pass"
    cells = (LOAD, "x = torch.ones(3)", "y = torch.ones(3, device=device) + x", waits)
    notebook = lab.open("fix-changed.ipynb", *cells, run="first")
    fix = Fix(notebook)
    expect(fix.root).to_contain_text("write goes to a folder of its own")
    fix.button("Fix the notebook").click()
    fix.button("Cancel").click()
    fix.wait("cancelled")
    fix.button("Fix again").click()
    fix.wait("running")
    notebook.cell(1).locator(".cm-content").click()
    notebook.page.keyboard.type("  # mine")
    wait_for_look(notebook.page, f"() => ({_TEXTS})()[1]", "x = torch.ones(3)  # mine")
    before = texts(notebook)
    (lab.server.folder / "changed").touch()
    fix.wait("proven")
    fix.button("Apply all changes").click()
    expect(notebook.page.locator(".Toastify")).to_contain_text("nothing was applied")
    assert texts(notebook) == before


@pytest.mark.breadth
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_from_the_first_error_one_fix_one_apply_and_one_run_lead_to_a_clean_end(lab: Lab, name: str) -> None:
    cells = NOTEBOOKS[name]
    notebook = lab.open(f"{name}.ipynb", *cells, run="all")
    fix = Fix(notebook)
    fix.prove("tried" if name == "classifier" else "proven")  # its layers are trained from now on
    expect(fix.root.locator(".dt-fix-status")).to_contain_text("ran to its end")
    fix.apply()
    changed = [text != cell for text, cell in zip(texts(notebook), cells, strict=True)]
    fix.run()
    expect(notebook.cell(len(cells) - 1).locator(".jp-OutputArea-output").first).to_contain_text("done")
    assert any(changed)
    fix.button("Undo").click()
    expect(fix.button("Apply all changes")).to_be_visible()
    wait_for_look(notebook.page, _TEXTS, list(cells))


BUG: Final = ("x = torch.ones(3)", "y = torch.ones(3, device=device) + x\nprint('done')")


@pytest.mark.breadth
def test_a_kernel_that_is_restarted_or_interrupted_meanwhile_leaves_the_notebook_as_it_was(lab: Lab) -> None:
    cells = (LOAD, *BUG, "import time\nprint('started', flush=True)\ntime.sleep(600)")
    notebook = lab.open("fix-restarted.ipynb", *cells, run="first")
    fix = Fix(notebook)
    fix.button("Fix the notebook").click()
    fix.wait("running")
    notebook.start(3)
    expect(notebook.cell(3).locator(".jp-OutputArea-output")).to_contain_text("started")
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_idle()
    expect(fix.button("Cancel")).to_be_visible()  # it has a kernel of its own
    notebook.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    notebook.wait_idle()
    expect(fix.button("Cancel")).to_have_count(0)
    assert texts(notebook) == list(cells)
    notebook.run(0)
    fix.button("Fix the notebook").click()
    fix.wait("running")
    fix.button("Cancel").click()
    fix.wait("cancelled")


@pytest.mark.breadth
def test_two_notebooks_are_fixed_at_once_each_in_its_own_cells(lab: Lab) -> None:
    names = ("fix-one.ipynb", "fix-other.ipynb")
    cells = {name: (LOAD, f"# {name}\n{BUG[0]}", BUG[1]) for name in names}
    notebooks = {name: lab.open(name, *cells[name]) for name in names}
    for name, notebook in notebooks.items():
        notebook.go_to(name)
        notebook.run(0)
        fix = Fix(notebook)
        fix.button("Fix the notebook").click()
        fix.wait("running", "proven")
    for name, notebook in notebooks.items():
        notebook.go_to(name)
        fix = Fix(notebook)
        fix.wait("proven")
        expect(fix.root.locator(".dt-fix-bug")).to_have_count(1)
        fix.apply()
        changed = texts(notebook)
        assert changed != list(cells[name])
        assert changed[1].startswith(f"# {name}\n")


@pytest.mark.breadth
def test_a_notebook_of_sixty_cells_is_fixed_and_runs_only_what_has_to_run(lab: Lab) -> None:
    cells = (
        LOAD,
        BUG[0],
        *(f"a{number} = torch.full((2,), {number}.0, device=device).sum()" for number in range(57)),
        BUG[1],
    )
    notebook = lab.open("fix-sixty.ipynb", *cells, run="all")
    fix = Fix(notebook)
    fix.prove()
    fix.apply()
    assert [text != cell for text, cell in zip(texts(notebook), cells, strict=True)].count(True) == 1
    fix.run()
    expect(notebook.cell(59).locator(".jp-OutputArea-output").first).to_contain_text("done")
    count = "() => jupyterapp.shell.currentWidget.content.widgets[30].model.executionCount"
    wait_for_look(notebook.page, count, 31)


DESCRIBED: Final = {"✗, the cell and the line", "The tensor"}
"""What notebook 0 shows by its looks, not by a word on the screen."""


@pytest.mark.breadth
def test_every_word_of_the_screen_that_notebook_0_explains_is_on_the_screen(lab: Lab) -> None:
    cells = nbformat.read(ROOT / "notebooks" / "00-the-first-trace.ipynb", as_version=4).cells
    prose = {cell.source.partition("\n")[0]: cell.source for cell in cells if cell.cell_type == "markdown"}
    explained = prose["## Read the report"] + prose["## The fix"]
    words = set(re.findall(r"\*([^*\n`]+?)\*", explained.replace("**", "*"))) - DESCRIBED
    failing = next(at for at, cell in enumerate(cells) if "raises-exception" in cell.metadata.get("tags", ()))
    notebook = lab.open("notebook-0.ipynb", *cells)
    for at in range(failing + 1):
        if cells[at].cell_type == "code":
            notebook.run(at)
    report = notebook.wait_ready("report")
    seen = {word for word in words if report.get_by_text(word, exact=True).count()}
    report.get_by_role("button", name="Fix the notebook").click()
    fix = Fix(notebook)
    fix.wait("proven")
    seen |= {word for word in words if fix.button(word).count()}
    fix.apply()
    seen |= {word for word in words if fix.button(word).count()}
    assert seen == words
