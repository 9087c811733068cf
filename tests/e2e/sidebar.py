"""What a person does with the sidebar, for tests to read like that."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from e2e.notebook import Notebook, wait_for_look

# A model whose head was attached after the move, on a machine without a GPU.
STORY = (
    "%load_ext devtrace\n%devtrace simulate cuda:2",
    "import torch\n"
    "from torch import nn\n\n"
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.body = nn.Sequential(*[nn.Linear(16, 16) for _ in range(4)])\n"
    "        self.out_head = nn.Linear(16, 4)\n\n"
    "    def forward(self, x):\n"
    "        return self.out_head(self.body(x))",
    "device = torch.device('cuda')\nmodel = Net()",
    "model.to(device)\nNone",
    "model.out_head = nn.Linear(16, 2)",
    "x = torch.randn(8, 16, device=device)",
    "%%devtrace\nmodel(x).sum()",
)


class Sidebar:
    """A page's panel, beside a notebook."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator("#devtrace-sidebar")

    @classmethod
    def open(cls, notebook: Notebook, link: str | None = "connected") -> Sidebar:
        """Show the panel, and wait until it stands so with the kernel."""
        notebook.command("devtrace:show-panel")
        sidebar = cls(notebook.page)
        sidebar.root.locator('[data-devtrace="sidebar"][data-ready="true"]').wait_for()
        if link is not None:
            sidebar.wait_link(link)
        return sidebar

    def wait_link(self, link: str) -> None:
        self.root.locator(f'[data-devtrace="sidebar"][data-link="{link}"]').wait_for()

    @property
    def status(self) -> Locator:
        """Return the sentence about the kernel."""
        return self.root.locator(".dt-side-status")

    @property
    def tracing(self) -> Locator:
        return self.root.get_by_role("switch", name="Trace every cell")

    def simulated(self, devices: int) -> Locator:
        return self.root.get_by_role("radio", name=str(devices) if devices else "Off", exact=True)

    @property
    def findings(self) -> Locator:
        return self.root.locator('[data-devtrace="finding"]')

    @property
    def traces(self) -> Locator:
        return self.root.locator("[data-part=traces] .dt-side-trace")

    def device(self, name: str) -> Locator:
        return self.root.locator(f'[data-part=devices] details[data-device="{name}"]')

    def row_of(self, name: str, device: str = "") -> Locator:
        """Return the row of what a name holds, among those of a device."""
        around = self.device(device) if device else self.root
        return around.locator(".dt-side-held").filter(has=self.page.locator(f'code[title="{name}"]'))

    def expect_traces(self, *labels: str) -> None:
        """Expect these traces, newest first."""
        expect(self.traces.locator(".dt-side-label")).to_have_text(list(labels))


# Beside which line of a cell (as it is now) stands which stripe: line, devices, whether it is stale.
_STRIPES = """index => {
    const cell = jupyterapp.shell.currentWidget.node.querySelector(`.jp-Cell[data-windowed-list-index="${index}"]`);
    const tops = [...cell.querySelectorAll('.cm-line')].map(line => line.getBoundingClientRect().top);
    return [...cell.querySelectorAll('.dt-stripe')].map(stripe => {
        const top = stripe.getBoundingClientRect().top;
        const line = tops.findIndex(each => Math.abs(each - top) < 6) + 1;
        return [line, stripe.dataset.devices, stripe.dataset.stale === 'true'];
    });
}"""
_SOURCE = "index => jupyterapp.shell.currentWidget.content.model.cells.get(index).sharedModel.getSource()"
_SELECTED = "() => document.activeElement?.closest('.cm-editor') ? getSelection().toString() : null"


def expect_stripes(notebook: Notebook, index: int, *wanted: tuple[int, str, bool]) -> None:
    """Expect these stripes beside the lines of a cell, and no others."""
    notebook.cell(index)
    wait_for_look(notebook.page, _STRIPES, wanted, at=index)


def expect_stripe(notebook: Notebook, index: int, *wanted: object) -> None:
    """Expect a stripe beside a line of a cell, whatever others there are."""
    notebook.cell(index)
    has = f"([index, wanted]) => ({_STRIPES})(index).some(each => JSON.stringify(each) === JSON.stringify(wanted))"
    wait_for_look(notebook.page, has, True, at=[index, wanted])


def source(notebook: Notebook, index: int) -> str:
    """Return the text of a cell."""
    text: str = notebook.page.evaluate(_SOURCE, index)
    return text


def expect_source(notebook: Notebook, index: int, text: str) -> None:
    """Expect a cell to have this text."""
    wait_for_look(notebook.page, _SOURCE, text, at=index)


def expect_selected(page: Page, text: str) -> None:
    """Expect the text that is selected in the editor that has the focus."""
    wait_for_look(page, _SELECTED, text)


def expect_selected_with(page: Page, part: str) -> None:
    """Expect the text that is selected in the editor that has the focus to have this in it."""
    wait_for_look(page, f"part => (({_SELECTED})() ?? '').includes(part)", True, at=part)


def active_cell(page: Page) -> int:
    index: int = page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex")
    return index


def execution_count(notebook: Notebook, index: int) -> int | None:
    """Return the number of a cell's run; None before it ran."""
    count: int | None = notebook.page.evaluate(
        "index => jupyterapp.shell.currentWidget.content.model.cells.get(index).executionCount", index
    )
    return count
