"""One Chromium for all end-to-end tests, started again where a test had to end it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from playwright.sync_api import Browser, BrowserContext, Playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
STEP_LIMIT = 60_000  # ms a wait may take: a kernel's first import of torch on a busy machine takes 10 s
TEST_LIMIT = 420  # s a test may take, more than its waits; a page whose script never ends holds playwright for ever


class Chromium:
    """Gives each test a context of its own, in a browser that outlives a hung page."""

    def __init__(self, playwright: Playwright, executable: str) -> None:
        self._playwright = playwright
        self.executable = executable
        self._browser: Browser | None = None

    @contextmanager
    def context(self, **options: object) -> Iterator[BrowserContext]:
        """A fresh context; options are those of playwright's new_context (viewport, color_scheme, offline ...)."""
        browser = self._running()
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})  # type: ignore[arg-type]
        context.set_default_timeout(STEP_LIMIT)
        try:
            yield context
        finally:
            if browser.is_connected():
                context.close()

    def close(self) -> None:
        if self._browser is not None:
            self._browser.close()

    def _running(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            self._browser = self._playwright.chromium.launch(executable_path=self.executable, args=FLAGS)
        return self._browser


@contextmanager
def watched() -> Iterator[None]:
    """End the browsers should a test not come to its end."""
    watch = threading.Timer(TEST_LIMIT, end_browsers)
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def end_browsers() -> None:
    """End the browsers below this process: whatever waits for a page of theirs gets an error."""
    for process in psutil.Process().children(recursive=True):
        if "--no-first-run" in process.cmdline() and "--type=" not in " ".join(process.cmdline()):
            process.kill()
