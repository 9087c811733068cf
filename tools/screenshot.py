"""`make screenshot`: the pictures of README and docs/: a report in a browser, and the panel in JupyterLab."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tools" / "demo" / "finetune.py"
PICTURES = ROOT / "docs"
SIZE: Final[ViewportSize] = {"width": 1000, "height": 900}
LAB: Final[ViewportSize] = {"width": 1180, "height": 760}
READY = '[data-devtrace="report"][data-ready="true"]'
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "harness")]

from e2e import chromium  # noqa: E402 (the tests' own way to find one)
from e2e.notebook import Notebook  # noqa: E402
from e2e.server import Server, serve  # noqa: E402
from e2e.sidebar import STORY, Sidebar  # noqa: E402

Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")


def report(folder: Path) -> Path:
    """Return the page that the program's failing run leaves."""
    page = folder / "report.html"
    command = [sys.executable, "-m", "devtrace", "run", "--simulate", "cuda:1", "--html", str(page), PROGRAM.name]
    subprocess.run(command, cwd=PROGRAM.parent, check=False, capture_output=True)
    return page


def take_report(browser: Browser, page: Path) -> None:
    for theme in THEMES:
        tab = browser.new_page(viewport=SIZE, color_scheme=theme)
        tab.goto(page.as_uri())
        shown = tab.locator(READY).first
        shown.wait_for()
        shown.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
        shown.screenshot(path=PICTURES / f"report-{theme}.png")


def take_panel(browser: Browser, server: Server) -> None:
    for theme in THEMES:
        with panel(browser, server, theme) as page:
            page.screenshot(path=PICTURES / f"panel-{theme}.png")
    with (
        server.settings("@jupyterlab/translation-extension:plugin", locale="zh_CN"),
        panel(browser, server, "light") as page,
    ):
        page.screenshot(path=PICTURES / "panel-chinese.png")


@contextmanager
def panel(browser: Browser, server: Server, theme: Theme) -> Iterator[Page]:
    """Yield a page of JupyterLab: a notebook that failed, with the panel beside it."""
    page = browser.new_page(viewport=LAB)
    notebook = Notebook.open(page, server, server.write("finetune.ipynb", *STORY))
    notebook.command("apputils:change-theme", theme=f"JupyterLab {theme.title()}")
    page.evaluate("() => { jupyterapp.shell.collapseLeft(); }")
    sidebar = Sidebar.open(notebook, link=None)
    notebook.run_all()
    sidebar.findings.first.wait_for()
    sidebar.device("cuda:0").wait_for()
    notebook.wait_ready("timeline")
    notebook.wait_ready("report").evaluate("report => report.scrollIntoView({ block: 'start' })")
    page.wait_for_function("!document.querySelector('.jp-RenderedHTMLCommon.jp-mod-loading')")
    yield page
    page.close()
    server.shut_kernels_down()


def has_chinese_letters() -> bool:
    """Return whether a font has them, else the picture is full of boxes; true where nothing lists the fonts."""
    lists = shutil.which("fc-list")
    return lists is None or subprocess.run([lists, ":lang=zh"], capture_output=True, check=False).stdout != b""


def main() -> None:
    executable = chromium.find()
    if executable is None:
        sys.exit(chromium.HOW_TO_GET_IT)
    if not has_chinese_letters():
        sys.exit("font-missing: got no font with Chinese letters; install one, such as Noto Sans CJK")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        take_report(browser, report(Path(folder)))
        with serve(Path(folder, "jupyter")) as server:
            take_panel(browser, server)
        browser.close()
    for picture in sorted([*PICTURES.glob("report-*.png"), *PICTURES.glob("panel-*.png")]):
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
