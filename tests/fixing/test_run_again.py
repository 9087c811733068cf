"""Which cells have to run again once some have changed: cells and changed ones -> what has to run."""

from __future__ import annotations

import pytest

from devtrace.fixing.notebooks.run_again import cells_to_run

MOVED = ("import torch", "net = Net()", "x = torch.ones(3)", "net.to(device)", "net(x)")


@pytest.mark.parametrize(
    ("sources", "changed", "to_run"),
    [
        (MOVED, {1}, [1, 3, 4]),
        (MOVED, {2}, [2, 4]),
        (MOVED, {3}, [3, 4]),
        (MOVED, {4}, [4]),
        (("class Net: pass", "def make():\n    return Net()", "net = make()", "print('net')"), {0}, [0, 1, 2]),
        (("a = {}", "a['x'] = b = 1", "c = b", "c += 1"), {1}, [1, 2, 3]),
        (("%load_ext devtrace\nx = 1", "!ls\ny = x", "%%time\ny"), {0}, [0, 1, 2]),
        (("x = 1", "this is no python", "x"), {0, 1}, [0, 1, 2]),
        (("print(1)", "print(2)"), {0}, [0]),
        (("with open(p) as f: pass", "for i in f: pass", "[j for j in i]", "k"), {0}, [0, 1, 2]),
        (("x = 1",), (), []),
    ],
)
def test_what_changed_runs_again_with_all_that_goes_by_what_it_gives(
    sources: tuple[str, ...], changed: set[int], to_run: list[int]
) -> None:
    assert cells_to_run(sources, changed) == to_run
