"""Which cells have to run again once some have changed: cells and changed ones -> what has to run, and what first."""

from __future__ import annotations

import pytest

from devtrace.fixing.notebooks.run_again import cells_needed, cells_to_run

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


NEW = ("import torch", "%load_ext devtrace", "size = 3", "net = Net(size)", "other = 1", "net.to(0)", "net(batch=1)")


@pytest.mark.parametrize(
    ("sources", "to_run", "ran", "needed"),
    [
        (NEW, {6}, (), [1, 2, 3, 5]),  # nothing ran in this kernel
        (NEW, {6}, NEW, []),
        (NEW, {6}, NEW[:5], [5]),  # the kernel has the name, but what changes its object did not run
        (NEW, {6}, (*NEW[:3], "net = Net(7)", *NEW[4:]), [3, 5]),  # as it was before it was edited
        (("x = 1", "x = 2", "y = 3", "x + y"), {3}, (), [1, 2]),  # what is bound again below is not needed
        (("x = 1", "x += 2", "x"), {2}, (), [0, 1]),
        (("rows = 1", "def f(rows):\n    out = rows\n    return out", "f(2)", "out = 1"), {2}, (), [1]),
        (("rows = 1", "for rows in [2]:\n    print(rows)", "[rows for rows in 'ab']"), {1, 2}, (), []),
        (("from maker import *", "y = 1", "make()"), {2}, (), [0]),
        (("%cd ..\n%matplotlib inline", "%devtrace fix", "%time 1", "!ls", "print(1)"), {4}, (), [0]),
        (("this is no python", "print(1)"), {1}, (), []),
        (("x = 1",), (), (), []),
    ],
)
def test_what_the_kernel_has_not_run_and_the_cells_go_by_runs_too(
    sources: tuple[str, ...], to_run: set[int], ran: tuple[str, ...], needed: list[int]
) -> None:
    namespace: dict[str, object] = {}
    for number, text in enumerate(ran, 1):
        namespace[f"_i{number}"] = f"{text}\n"
    namespace |= dict.fromkeys(("torch", "size", "net", "other") if ran else (), 0)
    assert cells_needed(sources, to_run, namespace) == needed


def test_a_name_that_its_cell_failed_to_give_is_needed_though_the_cell_ran() -> None:
    sources = ("x = 1", "y = missing()", "x + y")
    namespace = {"_i1": sources[0], "_i2": sources[1], "x": 1}
    assert cells_needed(sources, {2}, namespace) == [1]


def test_a_cell_that_is_too_deep_for_a_reader_gives_and_reads_nothing() -> None:
    deep = "z = x" + " + 1" * 20_000
    assert cells_to_run(["x = 1", deep, "x + 1"], {0}) == [0, 2]
    assert cells_needed(["x = 1", deep, "x + z"], {2}, {}) == [0]
