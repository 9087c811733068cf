"""`report.figure(...)` written as PNG and SVG, which kaleido does with the Chromium that is there."""

from __future__ import annotations

import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

import needs
from devtrace.api.results import diagnose
from devtrace.drawing.figures import FIGURES
from e2e.browser import Chromium
from samples import training

pytestmark = pytest.mark.e2e

PNG_OF_800_BY_400 = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 800, 400)


def test_every_figure_is_written_as_png_and_svg(
    chromium: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.imported("kaleido")
    from plotly.io import write_images  # of plotly 6.1, which kaleido 1 needs

    monkeypatch.setenv("BROWSER_PATH", chromium.executable)
    files = [tmp_path / f"{kind}.{ending}" for kind in FIGURES for ending in ("png", "svg")]
    report = diagnose(training(6))
    write_images([report.figure(file.stem) for file in files], files, width=800, height=400)
    for kind in FIGURES:
        assert (tmp_path / f"{kind}.png").read_bytes()[:24] == PNG_OF_800_BY_400
        drawn = ElementTree.parse(tmp_path / f"{kind}.svg").getroot()
        assert report.figure(kind).layout.title.text in "".join(drawn.itertext())
