"""Fix the notebook goes on from a live kernel, in forks of it that leave it as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels import Kernel, new_kernel

pytestmark = pytest.mark.slow

LOAD = """%load_ext devtrace
%devtrace on --simulate cuda:1
import os, random, socket, sqlite3, subprocess, threading, time
import torch
from torch import nn
device = 'cuda'"""
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.scale = torch.ones(8)
    def forward(self, x):
        return self.a(x) * self.scale
net = Net().to(device)
x = torch.rand(4, 8, device=device)
w = torch.ones(8)
optimizer = torch.optim.SGD(net.parameters(), 0.1)"""
TRAIN = """for step in range(3):
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
torch.save(net.state_dict(), 'best.pt')
with open('log.txt', 'a') as log:
    print(loss.item(), file=log)"""
BELOW = """net.load_state_dict(torch.load('best.pt'))
y = net(x) + w
print(len(open('log.txt').readlines()), os.path.exists('log.txt'))
os.remove('log.txt')"""
ASK = """import asyncio, json
from devtrace.notebook.magic import extensions
fix = extensions[get_ipython()].tracing.companions['fix'].fix
readers = []
def go():
    readers.append(fix.begin({cells}, 'cuda:1', last='In[2]' if {one} else '', one={one}))
asyncio.get_event_loop().call_soon(go);"""
LOOK = """def look():
    names = {name: str(value) for name, value in vars(net).items() if name[:1] != '_'}
    drawn = (random.getstate(), torch.get_rng_state().sum().item())
    own = (torch.get_num_threads(), sorted(os.listdir()), torch.cuda.memory_allocated(), os.getpid())
    files = (f'/proc/self/fd/{number}' for number in os.listdir('/proc/self/fd'))
    links = (os.readlink(file) for file in files if os.path.lexists(file))
    is_open = sorted(link for link in links if 'ipython' not in link and 'deleted' not in link)  # by a thread
    return [names, str(w.device), drawn, own, threading.active_count(), is_open]"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    monkeypatch.chdir(tmp_path)
    with new_kernel() as kernel:
        for number, source in enumerate((LOAD, NET)):
            assert kernel.run(source, cell_id=f"c{number}").status == "ok"
        yield kernel


def begin(kernel: Kernel, *sources: str, one: bool = False) -> None:
    """Run cells below those that have run, and ask for a fix."""
    for number, source in enumerate(sources, 2):
        kernel.run(source, cell_id=f"c{number}")
    cells = [{"cell": f"c{number}", "source": source} for number, source in enumerate((LOAD, NET, *sources))]
    kernel.run(ASK.format(cells=cells, one=one))


def end(kernel: Kernel) -> dict[str, Any]:
    """Wait for what came."""
    found: dict[str, Any] = json.loads(kernel.run("readers.pop().join(); print(json.dumps(fix.state))").streams)
    return found


def test_a_fix_goes_on_from_the_kernel_and_leaves_it_as_it_was(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(LOOK)
    begin(kernel, TRAIN)
    end(kernel)
    before = kernel.run("before = look(); before").result
    begin(kernel, TRAIN, BELOW)
    found = end(kernel)
    assert kernel.run("look()").result == before
    assert (found["state"], [bug["cell"] for bug in found["bugs"]]) == ("proven", ["c1", "c3"])
    assert found["closing"].startswith("✓ Proven: with these changes the notebook ran to its end on 1 simulated device")
    assert found["run"] == ["c1", "c2", "c3"]
    assert list(tmp_path.iterdir()) == []


def test_one_fix_is_tried_and_the_next_error_named(kernel: Kernel) -> None:
    begin(kernel, "y = net(x)\nz = y + w", one=True)
    found = end(kernel)
    assert len(found["bugs"]) == 1
    assert found["closing"].startswith(
        "Tried: with this change the error is gone. Next In[3] line 2 fails: `w` is on cpu"
    )
    assert [each["cell"] for each in found["changed"]] == ["c1"]


REFUSED = (
    "socket.create_connection(('127.0.0.1', 9), 1)",
    "subprocess.run(['touch', 'mine.txt'])",
    "os.system('touch mine.txt')",
    "sqlite3.connect('mine.db')",
    "os.open('mine.txt', os.O_CREAT | os.O_WRONLY)",
    "os.truncate('best.pt', 0)",
)


@pytest.mark.parametrize("by", ["the system", "a hook"])
def test_what_no_trial_may_do_ends_it_with_the_reason(kernel: Kernel, tmp_path: Path, by: str) -> None:
    (tmp_path / "best.pt").write_text("mine")
    if by == "a hook":
        kernel.run("from devtrace.fixing.notebooks import confined\nconfined._hold = lambda folder: False")
    for does in REFUSED:
        begin(kernel, f"y = net(x)\n{does}")
        found = end(kernel)
        assert found["closing"].startswith("not tried to the end: PermissionError: "), does
        assert len(found["bugs"]) == 1
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("best.pt", "mine")]


def test_a_trial_that_hangs_is_ended_with_all_that_it_began(kernel: Kernel) -> None:
    hangs = "y = net(x)\ntime.sleep(600)"
    begin(kernel, hangs)
    kernel.run("while fix.state['round'] < 2: time.sleep(0.01)\nfix.cancel()")
    assert end(kernel)["state"] == "cancelled"
    kernel.run("from devtrace.fixing.notebooks import trial\ntrial.LEAST = 2")
    begin(kernel, hangs, one=True)
    assert end(kernel)["closing"].startswith("not tried to the end: after ")
    assert kernel.run("open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read()").result == "''"


def test_a_trial_whose_process_is_killed_is_told(kernel: Kernel) -> None:
    begin(kernel, "y = net(x)\nos.kill(os.getpid(), 9) if y.requires_grad else None")
    found = end(kernel)
    assert (found["state"], len(found["bugs"])) == ("left", 1)
    assert "ended early" in found["closing"]


DOES = {
    "workers": "data = torch.utils.data.DataLoader(torch.arange(8.0), 4, num_workers=2)\ntotal = sum(map(sum, data))",
    "figure": "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig('a.png'); plt.show()",
    "progress": "from tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass",
    "autocast": "with torch.autocast('cuda', torch.bfloat16): h = net(x)",
    "profiler": "with torch.profiler.profile() as profile: h = net(x)\nprofile.export_chrome_trace('trace.json')",
    "thread": "thread = threading.Thread(target=torch.rand, args=(3,))\nthread.start(); thread.join()",
    "arrays": "import numpy\nnumpy.save('a.npy', numpy.ones(3)); os.makedirs('b/c'); os.rename('a.npy', 'b/c/b.npy')",
    "logging": "import logging\nlogging.basicConfig(filename='run.log'); logging.warning('there')",
    "table": "import pandas\npandas.DataFrame({'a': [1]}).to_csv('a.csv'); print(pandas.read_csv('a.csv').shape)",
}


@pytest.mark.breadth
def test_a_trial_runs_what_cells_do(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(LOOK)
    for _ in range(2):  # what the first ones load stays
        begin(kernel, "y = net(x)")
        end(kernel)
    before = kernel.run("before = look(); before").result
    found = {}
    for name, source in DOES.items():
        begin(kernel, f"y = net(x)\n{source}")
        found[name] = end(kernel)["closing"]
    assert kernel.run("look()").result == before
    assert {name: closing for name, closing in found.items() if not closing.startswith("✓ Proven")} == {}
    assert list(tmp_path.iterdir()) == []
