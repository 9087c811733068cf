"""`make screenshot`: pictures of README and docs/: a report in a browser, JupyterLab with the panel, and a film."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect, sync_playwright

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tools" / "demo" / "finetune.py"
PICTURES = ROOT / "docs"
SIZE: Final[ViewportSize] = {"width": 1000, "height": 900}
LAB: Final[ViewportSize] = {"width": 1180, "height": 760}
FILM: Final[ViewportSize] = {"width": 860, "height": 620}
FILM_CELLS: Final = (
    "%load_ext devtrace\n%devtrace on --simulate cuda:1      # no GPU here: one is simulated",
    "import torch\nfrom torch import nn\n\ndevice = 'cuda'\n"
    "model = nn.Sequential(nn.Linear(16, 16), nn.ReLU())\nmodel.to(device)\nNone",
    "model.append(nn.Linear(16, 2))\nNone",
    "x = torch.ones(8, 16, device=device)\nloss = model(x).pow(2).mean()\nloss.backward()\nprint('trained one step')",
)
MOST_BYTES: Final = 600_000
"""Of the film: a page on a slow line shows it within some seconds."""
TRIAL_MS: Final = 60_000
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


class Film:
    """Pictures of a page with the seconds for which each is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._images: list[Image.Image] = []
        self._ms: list[int] = []

    def take(self, seconds: float) -> None:
        self._images.append(Image.open(io.BytesIO(self.page.screenshot())).convert("RGB"))
        self._ms.append(round(seconds * 1000))

    def press(self, button: Locator) -> None:
        """Show where a person presses, and press there."""
        button.evaluate("button => { button.style.outline = '3px solid #f57c00'; }")
        self.take(1.2)
        button.evaluate("button => { button.style.outline = ''; }")
        button.click()

    def save(self, path: Path) -> None:
        first, *rest = self._images
        first.save(path, save_all=True, append_images=rest, duration=self._ms, loop=0, quality=75, method=6)
        if path.stat().st_size > MOST_BYTES:
            sys.exit(
                f"{path.name}: got {path.stat().st_size:,} bytes, expected at most {MOST_BYTES:,}; take fewer pictures"
            )


def take_film(browser: Browser, server: Server) -> None:
    """Show a notebook from its error to its clean run, in fifteen seconds."""
    page = browser.new_page(viewport=FILM)
    notebook = Notebook.open(page, server, server.write("train.ipynb", *FILM_CELLS))
    notebook.command("apputils:change-theme", theme="JupyterLab Light")
    page.evaluate("() => { jupyterapp.shell.collapseLeft(); }")
    film = Film(page)
    film.take(1.5)
    notebook.run_all()
    report = notebook.wait_ready("report")
    notebook.wait_ready("timeline")
    report.evaluate("report => report.scrollIntoView({ block: 'start' })")
    film.take(3.5)
    finding = report.locator('[data-devtrace="finding"]').first
    film.press(finding.get_by_role("button", name="Try", exact=True))
    expect(finding.locator(".dt-fix-status")).to_contain_text("Proven", timeout=TRIAL_MS)
    film.take(2.5)
    film.press(finding.get_by_role("button", name="Insert", exact=True))
    notebook.cell(2).scroll_into_view_if_needed()
    film.take(1.5)
    notebook.run_all()
    expect(notebook.cell(3).locator(".jp-OutputArea-output").first).to_contain_text("trained one step")
    notebook.panel.get_by_text("No device problems").nth(1).wait_for()
    film.take(3.5)
    film.save(PICTURES / "film.webp")
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
            take_film(browser, server)
        browser.close()
    for picture in [*sorted(PICTURES.glob("*.png")), PICTURES / "film.webp"]:
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
