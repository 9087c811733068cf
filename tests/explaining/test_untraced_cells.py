"""Cells that nobody traced: a device error is explained below its traceback, anything else gets nothing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtrace.report.mime import MIME_TYPE
from kernels import Kernel, new_kernel
from shells import Shell, new_shell

MODEL = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
x = torch.ones(1, 4, device="cuda:0")
"""


@pytest.fixture
def shell() -> Iterator[Shell]:
    with new_shell("%load_ext devtrace", "%devtrace simulate cuda:1", MODEL) as shell:
        yield shell


def test_a_device_error_of_an_untraced_cell_gets_its_finding_without_a_timeline(shell: Shell) -> None:
    ran = shell.run("model(x)")
    assert type(ran.error) is RuntimeError
    (report,) = ran.reports
    assert "model.0.weight" in report["text/plain"]
    assert "<svg" not in report["text/html"]
    assert "untraced" in report[MIME_TYPE]
    assert report[MIME_TYPE]["title"] == f"In[{shell.count}]"


def test_a_model_that_a_cell_made_anew_is_moved_where_that_made_it(shell: Shell) -> None:
    shell.run("device = 'cuda:0'")
    shell.run("model.to(device)")
    shell.run("model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())")
    (report,) = shell.run("for _ in range(2):\n    model(x)").reports
    assert "`model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to(device)`" in " ".join(report["text/plain"].split())


TOWER = """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = {}
        for name in ("age", "size"):
            self.heads[name] = nn.Linear(4, 1)
        self.norm = nn.LayerNorm(1)

    def forward(self, rows):
        return self.norm(sum(self.heads[name](rows) for name in self.heads))
"""


def test_a_traced_cell_knows_that_a_model_of_earlier_cells_moved_without_its_plain_dict(shell: Shell) -> None:
    for cell in (TOWER, "tower = Tower()", "tower.cuda()"):
        shell.run(cell)
    (report,) = shell.run("%%devtrace\ntower(x)").reports
    assert "`heads` is a plain dict" in report["text/plain"]
    assert "`self.heads = nn.ModuleDict()`" in report["text/plain"]


def test_a_global_that_a_function_reads_is_moved_in_the_cell_that_calls_it(shell: Shell) -> None:
    for cell in (
        "loss_of = nn.CrossEntropyLoss(weight=torch.ones(4))",
        "device = 'cuda:0'\nwanted = torch.tensor([1]).to(device)",
        "def cost():\n    return loss_of(x, wanted)",
    ):
        shell.run(cell)
    (report,) = shell.run("%%devtrace\ncost()").reports
    assert f"add `loss_of.to(device)` above In[{shell.count}] line 2" in report["text/plain"]


LATE = """
class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)
        self.table = nn.Embedding(3, 4)

    def forward(self, count):
        ids = torch.full((count,), 1)
        return self.out(self.table(ids))
"""


def test_a_model_whose_first_layer_has_not_run_yet_can_name_the_device(shell: Shell) -> None:
    shell.run(LATE)
    shell.run("late = Late().cuda()")
    (report,) = shell.run("%%devtrace\nlate(2)").reports
    assert "device=next(self.parameters()).device)`" in report["text/plain"]


def test_a_model_that_stayed_is_not_taken_for_another_of_its_class_that_moved(shell: Shell) -> None:
    shell.run(TOWER)
    shell.run("first, second = Tower().cuda(), Tower()")
    (report,) = shell.run("%%devtrace\nsecond(x)").reports
    assert "plain dict" not in report["text/plain"]


def test_a_line_that_hands_a_tensor_to_numpy_is_the_line_that_failed(shell: Shell) -> None:
    (report,) = shell.run("import numpy as np\nnp.argmax(x, axis=1)").reports
    assert f"In[{shell.count}] line 2" in report["text/plain"]
    assert "`x.cpu()`" in report["text/plain"]


@pytest.mark.parametrize(
    "line",
    [
        "torch.ones(2) + torch.ones(3)",
        "{}['device']",
        "raise RuntimeError('a device of my own')",
        "1 +",
        "x.item('cpu')",
    ],
)
def test_any_other_error_gets_nothing(shell: Shell, line: str) -> None:
    ran = shell.run(line)
    assert ran.error is not None
    assert ran.displayed == []
    assert "devtrace" not in ran.text


NO_CUDA = "torch has no CUDA device here; to try this notebook on a simulated one, type `%devtrace simulate cuda:1`"


@pytest.mark.parametrize("line", ["torch.ones(2).cuda()", "torch.ones(2, device='cuda')", "nn.Linear(2, 2).to('cuda')"])
def test_a_cell_that_asks_for_cuda_where_there_is_none_is_led_to_simulated_devices(shell: Shell, line: str) -> None:
    shell.run("%devtrace simulate off")
    ran = shell.run(line)
    assert "Torch not compiled with CUDA enabled" in str(ran.error)
    assert ran.displayed == []
    assert ran.stdout.endswith(f"devtrace: {NO_CUDA} and run the cell again\n")
    traced = shell.run("%%devtrace", line)
    assert NO_CUDA in " ".join(traced.reports[0]["text/plain"].split())
    shell.run("%devtrace simulate cuda:1")
    assert shell.run(line).error is None


def test_the_users_own_error_of_the_same_words_and_silence_that_was_asked_for_get_no_hint(shell: Shell) -> None:
    shell.run("%devtrace simulate off")
    assert "devtrace" not in shell.run("raise AssertionError('Torch not compiled with CUDA enabled')").text
    shell.run("%devtrace explain off")
    assert "devtrace:" not in shell.run("torch.ones(2).cuda()").text


def test_a_loop_that_gives_a_parameter_new_values_did_not_make_what_its_caller_gave(shell: Shell) -> None:
    shell.run("def repeat(x, w):\n    for _ in range(2):\n        x = x + w\n    x = x * w\n    return x")
    shell.run("images = torch.randn(1, 4)\nweight = torch.ones(4, device='cuda:0')")
    shown = shell.run("repeat(images, weight)").reports[0]["text/plain"]
    assert f"Created  In[{(shell.count or 0) - 1}] line 1  images = torch.randn(1, 4)" in shown


def test_a_global_of_an_earlier_cell_that_a_loop_of_a_function_takes_was_made_in_that_cell() -> None:
    with new_shell("%load_ext devtrace", "%devtrace simulate cuda:1") as shell:
        shell.run("import torch", "from torch import nn", "from torch.nn.functional import relu")
        shell.run(
            "class Net(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            "        self.blocks = nn.ModuleList([nn.Conv2d(3, 3, 3) for _ in range(2)])",
            "        self.head = nn.Linear(3, 2)",
            "    def forward(self, x):",
            "        for block in self.blocks:",
            "            x = relu(block(x))",
            "        return self.head(x.mean((2, 3)))",
        )
        shell.run("net = Net().to('cuda')", "pictures = [torch.randn(2, 3, 9, 9) for _ in range(1)].pop()")
        ran = shell.run("out = net(pictures)")
    created = next(line for line in ran.text.splitlines() if "Created" in line)
    assert f"In[{(shell.count or 0) - 1}] line 2 " in created


def test_the_users_exception_and_its_traceback_are_untouched(shell: Shell) -> None:
    error = shell.run("model(x)").error
    assert error is not None
    assert not hasattr(error, "__notes__")
    names = []
    traceback = error.__traceback__
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert names[-1] == "forward"
    assert "<module>" in names


def test_the_explanation_is_kept_with_the_traces(shell: Shell) -> None:
    shell.run("model(x)")
    (kept,) = shell.traced
    assert kept.label == f"In[{shell.count}]"
    assert kept.report.findings[0].rule == "device-mismatch"
    assert "model.0.weight" in str(shell.run("%devtrace report").value)


def test_a_cell_that_is_traced_is_not_explained_as_well(shell: Shell) -> None:
    ran = shell.run("%%devtrace", "model(x)")
    assert len(ran.reports) == 1
    assert "untraced" not in ran.reports[0][MIME_TYPE]


def test_explain_off_is_silence_and_explain_alone_explains_the_last_error(shell: Shell) -> None:
    shell.run("%devtrace explain off")
    assert shell.run("model(x)").displayed == []
    (again,) = shell.run("%devtrace explain").reports
    assert "model.0.weight" in again["text/plain"]
    shell.run("%devtrace explain on")
    assert len(shell.run("model(x)").reports) == 1


def test_explain_refuses_what_is_not_about_devices(shell: Shell) -> None:
    shell.run("{}['key']")
    assert "nothing-to-explain: got KeyError" in shell.run("%devtrace explain").text
    assert "command-argument: got %devtrace explain maybe" in shell.run("%devtrace explain maybe").text


def test_the_environment_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTRACE_EXPLAIN", "off")
    with new_shell("%load_ext devtrace", "%devtrace simulate cuda:1", MODEL) as shell:
        assert shell.run("model(x)").displayed == []


def test_nothing_of_the_cell_is_kept_alive_by_its_report(shell: Shell) -> None:
    shell.run("def run():", "    inner = torch.nn.Linear(4, 2)", "    gone.append(weakref.ref(inner))", "    inner(x)")
    shell.run("import weakref", "gone = []")
    assert len(shell.run("run()").reports) == 1
    shell.run("{}['another error']", "1")
    gone: list[weakref.ref[object]] = shell.ns["gone"]
    gc.collect()
    assert gone[0]() is None


def test_in_a_kernel_the_finding_comes_below_the_error() -> None:
    with new_kernel() as kernel:
        kernel.run("%load_ext devtrace")
        kernel.run("%devtrace simulate cuda:1")
        kernel.run(MODEL)
        sent = _run(kernel, "model(x)")
        assert sent["kinds"] == ["error", "display_data"]
        assert sent["mark"] == {"cell": "the-cell"}
        assert "src/devtrace/" not in str(sent["traceback"])


def _run(kernel: Kernel, line: str) -> dict[str, object]:
    sent = kernel.run(line, cell_id="the-cell")
    return {"kinds": sent.kinds, "mark": sent.reports[0][MIME_TYPE]["untraced"], "traceback": sent.traceback}


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.scale = torch.ones(4)

    def forward(self, rows):
        return self.fc(rows) * self.scale
"""


def test_a_cell_that_ran_again_goes_by_the_number_that_it_has_now(shell: Shell) -> None:
    shell.run(NET, id="net")
    former = shell.count
    shell.run("net = Net().to('cuda:0')")
    shell.run("# changed\n" + NET, id="net")
    now = shell.count
    for run in ("net(x)", "%%devtrace\nnet(x)"):
        (report,) = shell.run(run).reports
        text = report["text/plain"]
        assert f"In[{now}] line 8   self.fc(rows) * self.scale" in text.replace("line 9", "line 8")
        assert f"as it ran as In[{former}]" in text
        assert f"In[{former}] line" not in text


def test_the_same_text_that_ran_again_has_its_new_number_and_no_remark(shell: Shell) -> None:
    for _ in range(2):
        shell.run(NET, id="net")
    shell.run("net = Net().to('cuda:0')")
    (report,) = shell.run("net(x)").reports
    assert "as it ran" not in report["text/plain"]


@pytest.mark.parametrize(
    ("line", "op"), [("model * x", "Tensor.mul"), ("x @ w", "Tensor.matmul"), ("x <= w", "Tensor.le")]
)
def test_an_operator_is_named_as_the_method_of_torch_that_it_calls(shell: Shell, line: str, op: str) -> None:
    shell.run("w, model = torch.ones(4, 4), torch.ones(4)")
    (report,) = shell.run(line).reports
    assert f" {op} " in report["text/plain"]


@pytest.mark.parametrize("mark", ["", "%%devtrace\n"], ids=["untraced", "traced"])
@pytest.mark.parametrize(
    ("made", "line", "given"),
    [
        ("", 'm = nn.Linear(4, 4).to("cuda"); m(torch.ones(1, 4))', 'torch.ones(1, 4, device="cuda")'),
        (
            "net = nn.Linear(4, 2).cuda()",
            "net(torch.rand(3, 4))",
            "torch.rand(3, 4, device=next(net.parameters()).device)",
        ),
        (
            "towers = {'left': nn.Linear(4, 2).cuda()}",
            "towers['left'](torch.eye(4)).sum()",
            "torch.eye(4, device=next(towers['left'].parameters()).device)",
        ),
    ],
)
def test_what_a_model_is_given_is_made_on_its_device(shell: Shell, made: str, line: str, given: str, mark: str) -> None:
    shell.run(made)
    (report,) = shell.run(mark + line).reports
    assert f"give it the device: `{given}`" in " ".join(report["text/plain"].split())


WRAPPED = """
from torch.utils.data import DataLoader
net = nn.Linear(4, 2).cuda()
rows = torch.ones(8, 4).cuda()
"""


@pytest.mark.parametrize("mark", ["", "%%devtrace\n"], ids=["untraced", "traced"])
@pytest.mark.parametrize(
    ("line", "made", "inner"),
    [
        (
            "wide = nn.DataParallel(net)\nnn.functional.mse_loss(net(rows), torch.zeros(8, 2))",
            "torch.zeros(8, 2",
            "src_device_obj",
        ),
        ("scaler = torch.amp.GradScaler('cuda')\nnet(rows) * torch.ones(2)", "torch.ones(2", "scaler._device"),
        (
            "def step(loader):\n    return net(rows) - torch.full((2,), 0.5)\n"
            "step(DataLoader([1], pin_memory_device='cuda:0'))",
            "torch.full((2,), 0.5",
            "loader.pin",
        ),
    ],
)
def test_what_an_object_of_a_package_keeps_for_itself_names_no_device(
    shell: Shell, line: str, made: str, inner: str, mark: str
) -> None:
    shell.run(WRAPPED)
    (report,) = shell.run(mark + line).reports
    fix = " ".join(report["text/plain"].split()).partition("Fix ")[2]
    assert made in fix
    assert inner not in fix


def test_what_the_cell_itself_reads_of_such_an_object_names_the_device(shell: Shell) -> None:
    shell.run(WRAPPED)
    (report,) = shell.run(
        "loader = DataLoader([1], pin_memory_device='cuda:0')\n"
        "print(loader.pin_memory_device)\nnn.Linear(4, 2).cuda()(rows) - torch.full((2,), 0.5)"
    ).reports
    assert "device=loader.pin_memory_device" in report["text/plain"]


SCHEDULE = """
class Schedule:
    def __init__(self, steps):
        self.betas = torch.linspace(0, 1, steps)

class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.schedule = Schedule(4)
        self.body = nn.Linear(4, 4)

    def noisy(self, rows):
        return self.body(rows) + self.schedule.betas
"""
TABLE = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
        self.scale = torch.full((4,), 0.5)

    def forward(self, x):
        return self.out(x) * self.scale
"""


@pytest.mark.parametrize(
    "cells",
    [
        (SCHEDULE, "diffusion = Diffusion()", "diffusion.to('cuda')", "diffusion.noisy(x)"),
        (TABLE, "blocks = nn.Sequential(nn.Linear(4, 4), Scaled()).cuda()", "blocks(x)"),
        (TOWER, "tower = Tower().to('cuda')", "tower(x)"),
        ("body = nn.Sequential(nn.Linear(4, 4)).cuda()", "body.append(nn.Linear(4, 2))", "body(x)"),
        ("frozen = nn.Linear(4, 4)", "y = nn.Linear(4, 4).cuda()(x)", "frozen(y)"),
        ("ask = get_ipython().ev", "bias = torch.ones(4)\ndef add(x):\n    return x + bias", "ask, add(x)"),
        ("from tqdm.auto import tqdm\nw = torch.ones(4)\ndef f(): return x * w", "for _ in tqdm([1]): f()"),
        ("net, z = nn.Linear(4, 2).cuda(), torch.ones(4)", "%%time\nnet(z)"),
        ("import kept_tables", "kept_tables.TABLES['a'] * x"),
        ("import kept_tables\ndef scaled(x):\n    return kept_tables.TABLE * x", "scaled(x)"),
    ],
)
def test_of_what_earlier_cells_made_a_traced_cell_knows_all_that_an_untraced_one_does(
    shell: Shell, cells: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept_tables.py").write_text("import torch\nTABLE = torch.ones(4)\nTABLES = {'a': torch.ones(4)}\n")
    monkeypatch.syspath_prepend(tmp_path)
    *earlier, last = cells
    for cell in earlier:
        shell.run(cell)
    texts = [shell.run(mark + last).reports[0]["text/plain"] for mark in ("", "%%devtrace\n")]
    untraced, traced = ([" ".join(line.split()) for line in text.splitlines()] for text in texts)
    known = [line for line in untraced if line.startswith(("Created", "Missed by", "Moved"))]
    assert known
    assert "__self__" not in "".join(texts)
    assert [line for line in known if line not in traced] == []
    assert [any("Fix" in line for line in lines) for lines in (untraced, traced)] == [True, True]


def test_where_the_cell_handled_the_error_the_advice_has_only_names_that_exist(shell: Shell) -> None:
    shell.run("net = nn.Linear(4, 2).cuda()")
    (report,) = shell.run("%%devtrace\ntry:\n    net(torch.rand(3, 4))\nexcept RuntimeError:\n    pass").reports
    assert 'create it on cuda:0: `device="cuda:0"`' in report["text/plain"]
