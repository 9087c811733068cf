"""One page of JupyterLab that all tests share which can: a page takes seconds to load, a notebook a moment to open.

    notebook = lab.open("a.ipynb", "%load_ext devtrace", "%%devtrace\\n...")     # with a kernel of its own
    notebook = lab.open("a.ipynb", "%%devtrace\\n...", warm=True)                # with one that has run WARM

After each test its notebooks are closed and their kernels are shut down; after one that failed the page is loaded anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, Literal
from urllib.error import HTTPError

from playwright.sync_api import BrowserContext, Page

from e2e.browser import Chromium
from e2e.notebook import Notebook, wait_restored
from e2e.server import TOKEN, Server

WARM: Final = "%load_ext devtrace\n%devtrace simulate cuda:2\nimport torch\nx = torch.ones(8, 8, device='cuda:0')"
_CLOSE: Final = """() => {
  for (const widget of [...jupyterapp.shell.widgets('main')]) widget.dispose();
  jupyterapp.shell.collapseRight();
}"""


class Lab:
    """A page of JupyterLab, and a kernel for tests that need none of their own."""

    def __init__(self, chromium: Chromium, server: Server) -> None:
        self.server = server
        self._chromium = chromium
        self._contexts = ExitStack()
        self._context: BrowserContext | None = None
        self.thrown: list[str] = []
        self._page: Page | None = None
        self._warm = ""

    @property
    def context(self) -> BrowserContext:
        """A test that hung has ended its browser; the next one gets another."""
        browser = self._context and self._context.browser
        if self._context is None or not (browser and browser.is_connected()):
            self._context = self._contexts.enter_context(self._chromium.context())
        return self._context

    def close(self) -> None:
        self._contexts.close()

    @property
    def page(self) -> Page:
        if self._page is None or self._page.is_closed():
            self._page = self.context.new_page()
            self._page.on("pageerror", lambda error: self.thrown.append(f"{error.message}\n{error.stack}"))
            # A workspace of its own: this page lives on, and would save its layout over that of a test's own page.
            self._page.goto(f"{self.server.url}lab/workspaces/shared?reset&token={TOKEN}")
            wait_restored(self._page)
        return self._page

    @contextmanager
    def second_page(self) -> Iterator[Page]:
        """Give another page of the same browser, which is closed whatever becomes of the test."""
        page = self.context.new_page()
        try:
            yield page
        finally:
            page.close()

    def open(
        self, name: str, *cells: str | dict[str, Any], warm: bool = False, run: Literal["first", "all"] | None = None
    ) -> Notebook:
        """Open a new notebook of these cells, wait until its kernel answers, and run the first cell or all."""
        notebook, path = Notebook(self.page), self.server.write(name, *cells)
        with_kernel = {"kernel": {"id": self._warm_kernel()}} if warm else {}
        notebook.command("docmanager:open", path=path, **with_kernel)
        notebook.go_to(path)
        notebook.panel.locator(".jp-Cell").first.wait_for()
        notebook.wait_idle()
        if run == "first":
            notebook.run(0)
        elif run == "all":
            notebook.run_all()
        return notebook

    def _warm_kernel(self) -> str:
        if self._warm not in {kernel["id"] for kernel in self.server.api("GET", "kernels")}:
            self.open("warm.ipynb", WARM, run="first")
            self._warm = self.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.id")
        return self._warm

    def clear(self, *, failed: bool) -> None:
        """Close what a test has opened."""
        page, self._page = self._page, None
        if page is not None and failed:
            page.close()
        elif page is not None:
            page.evaluate(_CLOSE)
            self._page = page
        with suppress(HTTPError):  # the server stumbles over one that goes by itself just now
            for session in self.server.api("GET", "sessions"):
                if session["kernel"]["id"] != self._warm:
                    self.server.api("DELETE", f"sessions/{session['id']}")
        if self._page is not None:
            self._page.evaluate("() => undefined")  # what was thrown on the way is told before the answer
        self.thrown.clear()
