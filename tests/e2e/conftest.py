"""Fixtures of the end-to-end tests: a server and a Chromium a session, a fresh context a test, no kernel left over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

import needs
from built import stale
from e2e import chromium as finder
from e2e.browser import STEP_LIMIT, Chromium, watched
from e2e.lab import Lab
from e2e.server import Server, serve

PICTURES = Path(__file__).parent / "pictures"
# Notebook 7 throws these by itself, without our extension too: it has no such schema, file browser, checkpoint. The
# last is JupyterLab's: a session whose notebook has been closed goes on to wait for its kernel.
NOT_OURS = (
    "reading 'schema'",
    "Command 'filebrowser:open-path' not registered",
    "reading 'last_modified'",
    "reading 'promise'",
)
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed  # type: ignore[attr-defined]
    return report


@pytest.fixture(autouse=True)
def watch() -> Iterator[None]:
    """Watch each test for itself: how many there are in a module has nothing to do with it."""
    with watched():
        yield


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    assert not (reason := stale()), reason
    executable = finder.find() or ""
    needs.present(executable, finder.HOW_TO_GET_IT)
    expect.set_options(timeout=STEP_LIMIT)
    with sync_playwright() as playwright:
        browser = Chromium(playwright, executable)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def running_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture
def server(running_server: Server) -> Iterator[Server]:
    """Give the Jupyter server; the kernels that a test leaves are shut down after it."""
    yield running_server
    running_server.shut_kernels_down()


@pytest.fixture(scope="session")
def shared_lab(chromium: Chromium, running_server: Server) -> Iterator[Lab]:
    lab = Lab(chromium, running_server)
    yield lab
    lab.close()


@pytest.fixture
def lab(shared_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Give the page of JupyterLab that tests share, in which this test finds nothing open."""
    yield shared_lab
    failed = request.node.stash.get(FAILED, False)
    if failed and not shared_lab.page.is_closed():
        picture(shared_lab.page, request.node.name)
    thrown = [*shared_lab.thrown]
    shared_lab.clear(failed=failed)
    assert ours(thrown) == []


@pytest.fixture
def context(chromium: Chromium) -> Iterator[BrowserContext]:
    with chromium.context() as context:
        yield context


@pytest.fixture
def page(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that throws nothing; what it showed is in pictures/ where the test failed."""
    page = context.new_page()
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(f"{error.message}\n{error.stack}"))
    yield page
    if request.node.stash.get(FAILED, False) and not page.is_closed():
        picture(page, request.node.name)
    assert ours(thrown) == []


def picture(page: Page, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")


def ours(thrown: list[str]) -> list[str]:
    return [error for error in thrown if not any(known in error for known in NOT_OURS)]
