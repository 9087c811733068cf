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
device, threads = 'cuda', torch.get_num_threads()"""
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
assert torch.get_num_threads() == max(1, threads // 2)
print(len(open('log.txt').readlines()), os.path.exists('log.txt'))
os.remove('log.txt')"""
ASK = """import asyncio, json
from devtrace.notebook.magic import extensions
fix = extensions[get_ipython()].tracing.companions['fix'].fix
readers = []
def go():
    readers.append(fix.begin({cells}, 'cuda:1', as_far={one}, one={one}))
asyncio.get_event_loop().call_soon(go);"""
LOOK = """import gc, numpy
import matplotlib.pyplot as plt
numpy.random.seed(3); drawing = plt.figure()
def look():
    names = {name: str(value) for name, value in vars(net).items() if name[:1] != '_'}
    drawn = [random.getstate(), torch.get_rng_state().sum().item(), str(numpy.random.get_state())]
    drawn += [torch.cuda.get_rng_state().sum().item(), plt.get_fignums()]
    own = (torch.get_num_threads(), sorted(os.listdir()), torch.cuda.memory_allocated(), os.getpid(), dict(os.environ))
    links = map(os.readlink, filter(os.path.lexists, (f'/proc/self/fd/{each}' for each in os.listdir('/proc/self/fd'))))
    is_open = sorted(link for link in links if 'ipython' not in link and 'deleted' not in link)  # by a thread
    children = open(f'/proc/self/task/{os.getpid()}/children').read()
    return [names, str(w.device), drawn, own, threading.active_count(), is_open, children]"""
HELD = "gc.collect(); int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20"


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
    begin(kernel, "x.cpu() + x", "y = net(x)\nz = y + w", one=True)  # the reader went past the first error
    found = end(kernel)
    assert len(found["bugs"]) == 1
    assert found["closing"].startswith(
        "Tried: with this change the error is gone. Next In[4] line 2 fails: `w` is on cpu"
    )
    assert [each["cell"] for each in found["changed"]] == ["c1"]


@pytest.mark.parametrize("ids", [("c2", "c3"), ("", "")])
def test_a_fix_that_a_cell_asks_for_sees_the_errors_of_cells_that_nobody_traced(
    kernel: Kernel, ids: tuple[str, str]
) -> None:
    kernel.run("%devtrace off", cell_id="off")
    kernel.run("y = net(x)", cell_id=ids[0])
    assert "✓ Proven" in kernel.run("%devtrace fix", cell_id=ids[1]).streams


def test_no_thread_of_ipython_prints_in_a_trial_that_it_cannot_write_the_history(kernel: Kernel) -> None:
    begin(kernel, "y = net(x)\nassert get_ipython().history_manager.save_thread is None")
    assert end(kernel)["state"] == "proven"


BUSY = "while not os.path.exists('end'): time.sleep(0.01)"


@pytest.mark.parametrize("runs", ["", BUSY])
def test_a_fix_that_a_subshell_is_asked_for_forks_between_two_cells_alone(
    kernel: Kernel, tmp_path: Path, runs: str
) -> None:
    sources = [LOAD, NET, "time.sleep(1)  # so that it is told\ny = net(x)"]
    assert kernel.run(sources[2], cell_id="c2").status == "error"
    states = list(kernel.fixing([{"cell": f"c{at}", "source": each} for at, each in enumerate(sources)], runs))
    (tmp_path / "end").touch()
    assert states[-1]["state"] == "proven"
    assert states[-1]["changed"][0]["cell"] == "c1"
    told = [state["cell"] for state in states if state["round"] == 1 and state["cell"]]
    assert ("c2" in told) if runs else told == []  # its error is known, and the kernel's main thread can be forked


PLAIN = """class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.downs = [nn.Linear(8, 8) for _ in range(2)]
        self.all_grids = torch.ones(8)
        self.register_buffer('own', torch.ones(8))
    def forward(self, x):
        for down in self.downs:
            x = down(x)
        return x
deep = Deep().to(device)
optimizer = torch.optim.SGD(deep.parameters(), 0.1) if [*deep.parameters()] else None"""


MEAN = """class Mean(torch.optim.SGD):
    def step(self):
        for p in self.param_groups[0]['params']:
            state = self.state[p]
            if not state:
                state['mean'] = torch.zeros(p.shape)
            mean = state['mean']
            mean.mul_(0.9).add_(p.grad)
layer = nn.Linear(8, 8).to(device)
optimizer = Mean(layer.parameters(), 0.1)"""


def test_an_error_is_fixed_by_what_was_seen_when_it_first_came(kernel: Kernel) -> None:
    begin(kernel, MEAN, "layer(x).sum().backward()\noptimizer.step()", one=True)  # the state stays, cells run meanwhile
    found = end(kernel)
    after = found["changed"][0]["after"] if found["changed"] else ""
    assert (found["state"], "torch.zeros(p.shape, device=p.device)" in after) == ("proven", True), found


CACHE = """import copy
class Cache:
    def __call__(self, x):
        return sum(torch.addcmul(x, *row) for row in self.rows)
cache = Cache()
cache.rows = copy.deepcopy([(torch.ones(8), torch.ones(8))] * 2)"""


def test_what_an_object_of_another_cell_keeps_is_moved_above_the_line_that_fails(kernel: Kernel) -> None:
    begin(kernel, CACHE, "y = cache(torch.ones(8, device=device))", one=True)
    found = end(kernel)
    moved = "cache.rows = [tuple(part.to(device) for part in each) for each in cache.rows]\ny = "
    assert (found["state"], found["changed"][0]["after"].startswith(moved)) == ("proven", True), found


def test_what_differs_is_said_in_the_words_of_who_reads_it(kernel: Kernel) -> None:
    begin(kernel, PLAIN, "loss = deep(x).sum()\nloss.backward()\nif optimizer: optimizer.step()")
    found = end(kernel)
    differs = "the layers in `deep.downs` are trained from now on; they were not before, so values differ ("
    assert (found["state"], differs in found["closing"]) == ("tried", True)


LEAKS = """seen, total, layer = [], 0, nn.Linear(8, 8).to(device)
for step in range(40):
    out = layer(torch.rand(4096, 8, device=device)).relu().mean(0)
    seen.append(out)
    total += out.square().mean()"""


def test_two_leaks_of_one_loop_come_in_one_press_and_what_is_not_reached_is_counted(kernel: Kernel) -> None:
    kernel.run("%devtrace on --simulate cuda:1,8MB")
    for one in (True, False):
        sources = [LEAKS] if one else [LEAKS, "torch.ones(1 << 22, device=device)", "pass"]
        begin(kernel, *sources, one=one)
        found = end(kernel)
        after = found["changed"][0]["after"]
        assert ("seen.append(out.detach())" in after, ".mean().detach()" in after) == (True, True), found
    assert found["closing"].startswith("2 errors are fixed; In[4] line 1 fails next: ")
    assert found["closing"].endswith(", and 1 cell below was not reached")


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
        kernel.run("from devtrace.fixing import confined\nconfined._hold = lambda folder: False")
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


PROVEN, LATE, EARLY = "✓ Proven", "not tried to the end: after", "no device error is left"
DOES = {
    "workers": (
        PROVEN,
        "data = torch.utils.data.DataLoader(torch.arange(8.0), 4, num_workers=2)\nk = sum(map(sum, data))",
    ),
    "figure": (PROVEN, "plt.close(drawing); plt.plot([1, 2]); plt.savefig('a.png'); plt.show()"),
    "progress": (PROVEN, "from tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass"),
    "autocast": (PROVEN, "with torch.autocast('cuda', torch.bfloat16): h = net(x)"),
    "profiler": (PROVEN, "with torch.profiler.profile() as seen: h = net(x)\nseen.export_chrome_trace('trace.json')"),
    "thread": (PROVEN, "thread = threading.Thread(target=torch.rand, args=(3,))\nthread.start(); thread.join()"),
    "endless thread": (PROVEN, "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"),
    "arrays": (PROVEN, "numpy.save('a.npy', numpy.ones(3)); os.makedirs('b/c'); os.rename('a.npy', 'b/c/b.npy')"),
    "numbers": (PROVEN, "random.seed(1); numpy.random.seed(1); torch.manual_seed(1); print(numpy.random.rand())"),
    "training": (PROVEN, "net(x).mean().backward(); optimizer.step(); del w"),
    "logging": (PROVEN, "import logging\nlogging.basicConfig(filename='run.log'); logging.warning('there')"),
    "table": (
        PROVEN,
        "import pandas\npandas.DataFrame({'a': [1]}).to_csv('a.csv'); print(pandas.read_csv('a.csv').shape)",
    ),
    "waiting": (PROVEN, "import asyncio\nawait asyncio.sleep(0)\nos.chdir('/'); os.environ['HOME'] = '/'"),
    "forgetting": (
        PROVEN,
        "import shutil\nopen('a', 'w').close(); shutil.copy('a', 'b'); os.remove('a')\n%reset -f\nprint('ran')",
    ),
    "hanging": (LATE, "y.sum().backward() if y.requires_grad else None\ntime.sleep(600)"),
    "greedy": (
        EARLY,
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\nbytearray(1 << 31)",
    ),
    "killed": (EARLY, "os.kill(os.getpid(), 9) if y.requires_grad else None"),
    "leaving": (EARLY, "os._exit(3) if y.requires_grad else None"),
    "raising": (EARLY, "threading.Thread(target=time.sleep, args=(600,)).start()\n{}['a']"),
}


@pytest.mark.parametrize("turns", [1, pytest.param(10, marks=pytest.mark.breadth)])
def test_after_many_trials_the_kernel_is_as_if_nothing_had_been_tried(
    kernel: Kernel, tmp_path: Path, turns: int
) -> None:
    kernel.run(LOOK)
    kernel.run("from devtrace.fixing.notebooks import trial")
    for _ in range(2):  # what the first ones load stays
        begin(kernel, "y = net(x)", one=True)
        end(kernel)
    before, held = kernel.run("before = look(); before").result, kernel.run(HELD).result
    found = []
    for name in list(DOES) * turns:
        expected, source = DOES[name]
        kernel.run(f"trial.LEAST = {1 if expected == LATE else 5}")
        begin(kernel, f"y = net(x)\n{source}", one=True)
        closing = end(kernel)["closing"]
        found += [] if closing.startswith(expected) else [(name, closing)]
    assert found == [], found
    assert kernel.run("look()").result == before
    assert int(kernel.run(HELD).result or 0) - int(held or 0) < 64  # MiB
    assert list(tmp_path.iterdir()) == []
