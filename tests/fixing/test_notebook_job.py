"""A notebook that is open in a page is fixed in a process of its own, while its kernel goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devtrace.fixing.notebooks.process import NotebookFix, wait_for

CELLS = (
    ("a", "import torch\nfrom torch import nn\nimport helpers\ndevice = 'cuda:0'"),
    ("b", "net = nn.Linear(8, 8).to(device)\nnet.head = nn.Linear(8, 2)"),
    ("empty", "  \n"),
    ("c", "rows = torch.ones(3, 8)"),
    ("d", "print('here', helpers.SCALE)\nnet.head(net(rows)).detach().numpy()"),
)
Ask = Callable[..., NotebookFix]


@pytest.fixture
def fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NotebookFix:
    (tmp_path / "helpers.py").write_text("SCALE = 2\n")
    monkeypatch.chdir(tmp_path)
    return NotebookFix(lambda: None, {})


def asked(cells: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    return [{"cell": cell, "source": source} for cell, source in cells]


def test_all_bugs_on_the_way_are_fixed_and_the_cells_to_run_again_are_named(fix: NotebookFix, tmp_path: Path) -> None:
    reader = fix.begin(asked(CELLS), "cuda:1")
    lines = list(wait_for(fix, reader, {"b": "In[2]", "c": "In[3]", "d": "In[4]"}))
    assert fix.state is not None
    assert fix.state["state"] == "proven"
    assert [bug["cell"] for bug in fix.state["bugs"]] == ["d", "d", "d"]
    changed = {each["cell"]: each["after"] for each in fix.state["changed"]}
    assert changed["d"].endswith(".detach().cpu().numpy()")
    assert set(changed) <= set(fix.state["run"])
    assert fix.state["run"][-1] == "d"
    assert lines[0] == "run 1"
    proven = "✓ Proven: with these changes the notebook ran to its end on 1 simulated device; the same output and "
    assert lines[-1].startswith(proven)
    assert "  In[4] line 2" in lines
    assert [path.name for path in tmp_path.glob("*.ipynb")] == []


def test_what_cannot_be_fixed_is_named_with_what_was_found(fix: NotebookFix) -> None:
    cells = (("a", "import torch\nx = torch.ones(3, device='cuda:0')"), ("b", "{}['missing']"))
    reader = fix.begin(asked(cells), "cuda:1")
    *_, closing = wait_for(fix, reader, {})
    assert closing.startswith("no device error is left on 1 simulated device, but the program ended early: KeyError")
    assert fix.state is not None
    assert (fix.state["state"], fix.state["changed"]) == ("left", [])


def test_a_run_that_is_cancelled_changes_nothing_and_its_process_ends(fix: NotebookFix) -> None:
    reader = fix.begin(asked((("a", "import time\ntime.sleep(600)"),)), "cuda:1")
    fix.cancel()
    reader.join()
    assert fix.state is not None
    assert (fix.state["state"], fix.state["changed"]) == ("cancelled", [])
