"""What a person does with a notebook in JupyterLab or Notebook 7, for tests to read like that.

    notebook = Notebook.open(page, server, server.write("a.ipynb", "%load_ext devtrace", "%%devtrace\\n..."))
    notebook.run_all()
    notebook.wait_ready("report")

No sleeps: everything waits for what the user would see, or for a `data-ready` of ours.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from playwright.sync_api import Locator, Page, Response, TimeoutError, expect

from e2e.server import TOKEN, Server

App = Literal["lab", "notebook"]


class Notebook:
    """A notebook that is open in a page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @classmethod
    def open(cls, page: Page, server: Server, path: str, app: App = "lab", kernel: bool = True) -> Notebook:
        """Open `path`; with `kernel`, wait until its kernel answers."""
        # A workspace is the layout that JupyterLab keeps; reset it, or the last test's tabs come back.
        view = f"lab/workspaces/e2e/tree/{path}?reset&" if app == "lab" else f"notebooks/{path}?"
        page.goto(f"{server.url}{view}token={TOKEN}")
        wait_restored(page)
        notebook = cls(page)
        notebook.panel.locator(".jp-Cell").first.wait_for()
        if kernel:
            notebook.wait_idle()
        return notebook

    @property
    def panel(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel:visible")

    def cell(self, index: int) -> Locator:
        """A cell, counted from 0, scrolled to, so that a long notebook shows it."""
        cell = self.panel.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')
        cell.scroll_into_view_if_needed()
        return cell

    def wait_idle(self) -> None:
        """Wait until the kernel has nothing to do."""
        self.page.wait_for_function(
            "() => { const panel = jupyterapp.shell.currentWidget;"
            " const kernel = panel?.sessionContext?.session?.kernel;"
            " return kernel?.status === 'idle' && kernel.connectionStatus === 'connected'; }"
        )

    def run_all(self) -> None:
        """Run all cells and wait for the last one, or the one that fails."""
        self.command("notebook:run-all-cells")
        self.wait_idle()

    def run(self, index: int) -> None:
        """Run one cell and wait for its end."""
        self.cell(index).locator(".jp-InputArea-editor").click()
        self.command("notebook:run-cell")
        self.wait_idle()

    def start(self, index: int) -> None:
        """Run one cell and go on while it runs."""
        self.cell(index).locator(".jp-InputArea-editor").click()
        self.page.evaluate("() => { void jupyterapp.commands.execute('notebook:run-cell'); }")

    def go_to(self, name: str) -> None:
        """Bring the tab of a notebook to the front."""
        self.page.wait_for_function(
            "name => [...jupyterapp.shell.widgets('main')].some(widget => widget.title.label === name)", arg=name
        )
        self.page.evaluate(
            "name => { const widget = [...jupyterapp.shell.widgets('main')].find(each => each.title.label === name);"
            " jupyterapp.shell.activateById(widget.id); }",
            name,
        )
        self.page.wait_for_function("name => jupyterapp.shell.currentWidget.title.label === name", arg=name)

    def settle_workspace(self) -> None:
        """Wait until JupyterLab has saved its layout as it is now, which a reload brings back.

        A save that was under way may hold an older layout; the one that is waited for knows that the left is collapsed.
        """
        with self.page.expect_response(_saves_a_collapsed_left):
            self.page.evaluate("() => { jupyterapp.shell.expandRight(); jupyterapp.shell.collapseLeft(); }")

    def come_back(self, server: Server) -> None:
        """Load the page again and wait until the layout of before is there.

        The address names the workspace only. JupyterLab opens a notebook that is in the address once more, after the
        layout. That takes the front from the tab that a test went to, at a time that nothing tells.
        """
        self.settle_workspace()
        self.page.goto(f"{server.url}lab/workspaces/e2e")
        wait_restored(self.page)

    def save(self) -> None:
        self.command("docmanager:save")

    def expect_keys_and_theme(self) -> None:
        """Expect a report, of which Ops was opened last, to follow the arrow keys and JupyterLab's theme."""
        self.page.get_by_role("tab", name="Ops", exact=True).press("ArrowLeft")
        expect(self.page.get_by_role("tab", name="Lines", exact=True)).to_be_focused()
        expect(self.page.locator(".dt-report.dt-dark")).to_have_count(0)
        self.command("apputils:change-theme", theme="JupyterLab Dark")
        expect(self.page.locator(".dt-report.dt-dark")).to_have_count(1)

    def command(self, command: str, **arguments: object) -> None:
        """Execute a command of JupyterLab, as its palette does, once it is there, and wait for its end."""
        self.page.wait_for_function("command => jupyterapp.commands.hasCommand(command)", arg=command)
        self.page.evaluate(
            "([command, args]) => { window.e2eDone = false;"
            " void jupyterapp.commands.execute(command, args).finally(() => { window.e2eDone = true; }); }",
            [command, arguments],
        )
        self.page.wait_for_function("window.e2eDone")

    def wait_ready(self, name: str = "report", index: int = 0) -> Locator:
        """Wait until the index-th view `data-devtrace=name` (report, timeline ...) has painted, and return it."""
        ready = self.page.locator(f'[data-devtrace="{name}"][data-ready="true"]').nth(index)
        ready.wait_for()
        return ready


def wait_restored(page: Page) -> None:
    """Wait until JupyterLab has started its extensions and brought its layout back."""
    page.wait_for_function("window.jupyterapp !== undefined")
    page.evaluate("async () => { await jupyterapp.restored; }")


def wait_for_look(page: Page, look: str, wanted: object, *, at: Any = None) -> None:
    """Wait until a look at the page (JavaScript) gives what is wanted; where it never does, tell what it gave."""
    text = json.dumps(wanted, ensure_ascii=False, separators=(",", ":"))
    try:
        page.wait_for_function(f"([at, wanted]) => JSON.stringify(({look})(at)) === wanted", arg=[at, text])
    except TimeoutError as late:
        raise AssertionError(f"expected {wanted!r}, got {page.evaluate(look, at)!r}") from late


def _saves_a_collapsed_left(response: Response) -> bool:
    if "/api/workspaces" not in response.url or response.request.method != "PUT":
        return False
    layout = json.loads(response.request.post_data or "{}")["data"].get("layout-restorer:data", {})
    return bool(layout.get("left", {}).get("collapsed"))
