"""Every Python that a test starts (kernel, server, script) sees this checkout's sources, whatever is installed."""

from __future__ import annotations

import os
from pathlib import Path

SOURCES = str(Path(__file__).parents[1] / "src")
os.environ["PYTHONPATH"] = os.pathsep.join([SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])
