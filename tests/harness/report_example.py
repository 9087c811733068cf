"""The example of docs/reports.md: its cells, the report it shows, and the report that a notebook gives."""

from __future__ import annotations

import re
from textwrap import dedent

from devtrace.api.results import Report
from documents import PAGES
from shells import new_shell

PAGE = PAGES["reports.md"]
PARTS = re.compile(r"```python\n(# In\[3\]\n.*?)```\n\n.*?((?:    [^\n]*\n)+)", re.S)
# What the page leaves out: a cell that loads devtrace, and one with imports, a device and tokens.
BEFORE = (
    "%load_ext devtrace\n%devtrace simulate cuda:1",
    "import torch\nfrom torch import nn\ndevice = 'cuda:0'\ntokens = torch.zeros(4, 16, dtype=torch.long)",
)


def shown() -> str:
    return dedent(_parts()[2]).rstrip()


def made() -> Report:
    """Run the page's cells in a notebook's shell."""
    _, *cells = re.split(r"^# In\[\d+\]\n", _parts()[1], flags=re.M)
    with new_shell(*BEFORE, *map(str.strip, cells)) as shell:
        report = shell.traced[-1].report
        assert isinstance(report, Report)
        return report


def _parts() -> re.Match[str]:
    found = PARTS.search(PAGE)
    assert found is not None
    return found
