"""`make screenshot`: README's pictures, the report of tools/demo/finetune.py as a browser shows it in both themes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Playwright, ViewportSize, sync_playwright

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tools" / "demo" / "finetune.py"
PICTURES = ROOT / "docs"
SIZE: Final[ViewportSize] = {"width": 1000, "height": 900}
READY = '[data-devtrace="report"][data-ready="true"]'
sys.path.insert(0, str(ROOT / "tests"))

from e2e import chromium  # noqa: E402 (the tests' own way to find one)


def report(folder: Path) -> Path:
    """Return the page that the program's failing run leaves."""
    page = folder / "report.html"
    command = [sys.executable, "-m", "devtrace", "run", "--simulate", "cuda:1", "--html", str(page), PROGRAM.name]
    subprocess.run(command, cwd=PROGRAM.parent, check=False, capture_output=True)
    return page


def take(playwright: Playwright, page: Path, executable: str) -> None:
    browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for theme in themes:
        tab = browser.new_page(viewport=SIZE, color_scheme=theme)
        tab.goto(page.as_uri())
        shown = tab.locator(READY).first
        shown.wait_for()
        shown.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
        shown.screenshot(path=PICTURES / f"report-{theme}.png")
    browser.close()


def main() -> None:
    executable = chromium.find()
    if executable is None:
        sys.exit(chromium.HOW_TO_GET_IT)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        take(playwright, report(Path(folder)), executable)
    for picture in sorted(PICTURES.glob("report-*.png")):
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
