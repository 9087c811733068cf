"""Each fix changes the one line that a good PyTorch programmer would change."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import linecache
from pathlib import Path

import pytest

import devtrace
from devtrace.diagnosis.edits import Code, applied
from devtrace.diagnosis.findings import Finding, Site
from shells import new_shell
from trees import parsed

HEAD = "import numpy as np\nimport torch\nfrom torch import nn\n\n\n"
STORE = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        {line}

    def forward(self, x):
        return x * self.scale + self.{use}


def main(device):
    model = Net().to(device)
    return model(torch.ones(2, device=device))
"""
METRIC = """\
from torchmetrics import Metric


class Recall(Metric):
    full_state_update = False

    def __init__(self, classes):
        super().__init__()
        self.add_state("hits", default=torch.zeros(classes), dist_reduce_fx="sum")
        self.seen = torch.zeros(classes)

    def update(self, preds, target):
        for each in range(len(self.hits)):
            self.hits[each] += (preds[target == each] == each).sum()
            self.seen[each] += (target == each).sum() * torch.ones(1, device=preds.device)[0]
            self.seen.mul_(torch.ones(1, device=preds.device))

    def compute(self):
        return (self.hits / self.seen).mean()


def main(device):
    both = nn.ModuleList([nn.Linear(2, 2), Recall(2)]).to(device)
    both[1].update(torch.tensor([0, 1], device=device), torch.tensor([0, 1], device=device))
"""
RUNNING = STORE.replace("        return", "        {update}\n        return")
CALL = """\
def main(device):
    {lines}
"""


def diagnosed(folder: Path, text: str) -> tuple[Finding, str]:
    """Run `main` of a program on a simulated device, and return its first finding and the program with its edits."""
    path = folder / "program.py"
    path.write_text(HEAD + text)
    linecache.checkcache()
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(RuntimeError, match="device"), devtrace.record(simulate="cuda:2") as recording:  # noqa: PT012
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        program.main("cuda:0")
    finding = recording.report.findings[0]
    return finding, applied(HEAD + text, list(finding.edits)).removeprefix(HEAD)


def changes(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines that went and the lines that came."""
    compared = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    went, came = ([line[2:].strip() for line in compared if line.startswith(sign)] for sign in ("- ", "+ "))
    return went, came


def main_of(*lines: str) -> str:
    return CALL.format(lines="\n    ".join(lines))


@pytest.mark.parametrize(
    ("program", "went", "came"),
    [
        pytest.param(
            main_of(
                "model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to(device)",
                "model[1] = nn.Linear(2, 3)",
                "return model(torch.ones(2, device=device))",
            ),
            [],
            ["model.to(device)"],
            id="a module is moved again below the line that attached a part of it",
        ),
        pytest.param(
            STORE.format(line="self.shift = torch.zeros(2)", use="shift"),
            ["self.shift = torch.zeros(2)"],
            ['self.register_buffer("shift", torch.zeros(2), persistent=False)'],
            id="a tensor that a module holds as an attribute becomes a buffer",
        ),
        pytest.param(
            RUNNING.format(line="self.mean = torch.zeros(2)", update="self.mean = self.mean * 0.9 + x", use="mean"),
            ["self.mean = torch.zeros(2)"],
            ['self.register_buffer("mean", torch.zeros(2))'],
            id="a running value is a buffer that checkpoints keep",
        ),
        pytest.param(
            RUNNING.format(line="self.seen = torch.zeros(2)", update="self.seen[:1].add_(x[:1])", use="seen"),
            ["self.seen = torch.zeros(2)"],
            ['self.register_buffer("seen", torch.zeros(2))'],
            id="so is what is changed in place",
        ),
        pytest.param(
            METRIC,
            ["self.seen = torch.zeros(classes)"],
            ['self.add_state("seen", default=torch.zeros(classes), dist_reduce_fx="sum")'],
            id="what a metric counts is a state of it",
        ),
        pytest.param(
            STORE.format(line='vars(self)["a-b"] = torch.zeros(2)', use="__dict__['a-b']"),
            ["return x * self.scale + self.__dict__['a-b']"],
            ["return x * self.scale + self.__dict__['a-b'].to(x.device)"],
            id="an attribute that no assignment can name is moved where it is used",
        ),
        pytest.param(
            STORE.format(line="self.layers = [nn.Linear(2, 2)]", use="layers[0](x)"),
            ["self.layers = [nn.Linear(2, 2)]"],
            ["self.layers = nn.ModuleList([nn.Linear(2, 2)])"],
            id="a list of layers becomes a ModuleList",
        ),
        pytest.param(
            STORE.format(line='self.layers = {"a": nn.Linear(2, 2)}', use='layers["a"](x)'),
            ['self.layers = {"a": nn.Linear(2, 2)}'],
            ['self.layers = nn.ModuleDict({"a": nn.Linear(2, 2)})'],
            id="a dict of layers becomes a ModuleDict",
        ),
        pytest.param(
            "def shift(x):\n    return x + torch.arange(2)\n\n\n"
            + main_of("return shift(torch.ones(2, device=device))"),
            ["return x + torch.arange(2)"],
            ["return x + torch.arange(2, device=x.device)"],
            id="a factory is given the device of the tensor that it meets",
        ),
        pytest.param(
            "class Band(nn.Module):\n    def __init__(this):\n        super().__init__()\n"
            "        this.gain = nn.Parameter(torch.ones(6))\n\n    def window(this):\n        return torch.ones(6)\n\n"
            "    def forward(this, x):\n        return x * this.gain * this.window()\n\n\n"
            + main_of("return Band().to(device)(torch.ones(2, 6, device=device))"),
            ["return torch.ones(6)"],
            ["return torch.ones(6, device=next(this.parameters()).device)"],
            id="a method that has returned knows its object by any name",
        ),
        pytest.param(
            main_of("x = torch.ones(2)", "y = torch.ones(2, device=device)", "x.to(device)", "return y + x"),
            ["x.to(device)"],
            ["x = x.to(device)"],
            id="the result of a move is kept",
        ),
        pytest.param(
            main_of(
                'batch = {"x": torch.ones(2), "y": torch.ones(2)}',
                'batch["x"] = batch["x"].to(device)',
                'return batch["x"] + batch["y"]',
            ),
            [],
            ['batch["y"] = batch["y"].to(device)'],
            id="what lies beside a moved tensor is moved as that was",
        ),
        pytest.param(
            main_of("model = nn.Linear(2, 2)", "x = torch.ones(2, device=device)", "return model(x)"),
            [],
            ["model.to(device)"],
            id="a module that never moved is moved below the line that makes it",
        ),
        pytest.param(
            main_of(
                "model = nn.Linear(2, 2)",
                "copy = model.weight.detach().clone()",
                "model.to(device)",
                "return model.weight + copy",
            ),
            ["model.to(device)"],
            ["model.to(device)"],
            id="a copy made before the move goes below the move",
        ),
        pytest.param(
            main_of(
                "model = nn.Linear(2, 2).to(device)",
                "model.cpu()",
                "return model(torch.ones(2, device=device))",
            ),
            [],
            ["model.to(device)"],
            id="a module that was sent away is brought back",
        ),
        pytest.param(
            "def double(x):\n    y = x.cpu()\n    return x + y\n\n\n"
            + main_of("return double(torch.ones(2, device=device))"),
            ["y = x.cpu()"],
            ["y = x.clone()"],
            id="a copy that was sent to the cpu is left where it was made",
        ),
        pytest.param(
            main_of("a = torch.ones(2, device=device)", "return a + torch.from_numpy(np.ones(2))"),
            ["return a + torch.from_numpy(np.ones(2))"],
            ["return a + torch.from_numpy(np.ones(2)).to(a.device)"],
            id="a passing value is moved where it is used",
        ),
    ],
)
def test_the_edit_is_what_a_programmer_would_write(
    program: str, went: list[str], came: list[str], tmp_path: Path
) -> None:
    finding, after = diagnosed(tmp_path, program)
    assert finding.edits, finding.help
    assert changes(program, after) == (went, came)


CELL = """\
import torch
from torch import nn
import torch.nn.functional as F
device = "cuda"
model = nn.Linear(4, 3).to(device)"""


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        (
            "weights = torch.ones(3)\nfor _ in range(2):\n    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))\n"
            "    F.cross_entropy(model(x.to(device)), y.to(device), weight=weights)",
            "weights = torch.ones(3).to(device)",
        ),
        (
            "for _ in range(2):\n    x = torch.randn(8, 4)\n    y = torch.randint(0, 3, (8,))\n"
            "    F.cross_entropy(model(x.to(device)), y)",
            "y = torch.randint(0, 3, (8,)).to(device)",
        ),
        (
            "def fit(x, weights):\n    x = model(x.to(device))\n    return x * weights\n"
            "weights = torch.ones(3)\nfit(torch.ones(1, 4), weights)",
            "device",
        ),
        (STORE.format(line="self.layers = [nn.Linear(2, 2)]", use="layers[0](x)") + "main(device)", "nn.ModuleList(["),
    ],
    ids=["a cell's first line", "beside a move in a loop", "a function of the cell's", "a container of layers"],
)
@pytest.mark.parametrize("magic", ["", "%%devtrace\n"], ids=["read", "recorded"])
def test_a_fix_uses_the_names_of_an_earlier_cell(cell: str, fix: str, magic: str) -> None:
    with new_shell("%load_ext devtrace", "%devtrace simulate cuda:1", CELL) as shell:
        printed = " ".join(shell.run(magic + cell).text.split())
    _, _, shown = printed.rpartition(" Fix ")
    assert f"{fix}" in shown
    assert "torch.nn" not in shown
    assert '"cuda' not in shown


def code(text: str) -> Code:
    source = parsed(text, "a.py")
    return Code(source, Site("a.py", 1))


def test_an_edit_that_would_leave_a_file_unreadable_is_not_made() -> None:
    here = code("x = f(a)\n")
    assert here.replaced(here.source.tree.body[0], "x = (") is None


def test_several_replacements_are_one_edit_of_all_their_lines() -> None:
    text = "y = f(\n    a,\n\n    b,\n) + c\n"
    here = code(text)
    names = [node for node in ast.walk(here.source.tree) if here.text(node) in ("a", "b", "c")]
    edit = here.all_replaced([(name, f"g({here.text(name)})") for name in names])
    assert edit is not None
    assert applied(text, [edit]) == "y = f(\n    g(a),\n\n    g(b),\n) + g(c)\n"


def test_a_statement_that_was_alone_in_its_block_leaves_pass() -> None:
    here = code("if x:\n    y = 1\n")
    block = here.source.tree.body[0]
    removed = here.removed(block.body[0])  # type: ignore[attr-defined]
    assert removed is not None
    assert applied(here.source.text, [removed]) == "if x:\n    pass\n"


@pytest.mark.parametrize("text", ["x = 1; y = x\n", "y = 1; x = 2\n", "if a: y = 1\n", "y = (\n    1\n); x = 2\n"])
def test_a_statement_that_shares_its_lines_is_not_removed(text: str) -> None:
    here = code(text)
    statement = next(s for s in ast.walk(here.source.tree) if isinstance(s, ast.Assign) and here.text(s)[0] == "y")
    assert here.removed(statement) is None


def test_a_line_below_a_statement_that_is_not_the_first_of_its_line_has_the_indent_of_that_line() -> None:
    here = code("if a:\n    x = 1; y = x\n")
    block = here.source.tree.body[0]
    added = here.below(block.body[1], "y.to(d)")  # type: ignore[attr-defined]
    assert added is not None
    assert applied(here.source.text, [added]) == "if a:\n    x = 1; y = x\n    y.to(d)\n"


EMA = """\
class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model).eval()
    def update(self, model, given):
        for p, q in zip(self.model.parameters(), model.parameters()):
            p.detach().mul_(0.9).add_(q.detach())
average = Average(net)
net = net.to(device)"""


@pytest.mark.parametrize("magic", ["", "%%devtrace\n"], ids=["read", "recorded"])
@pytest.mark.parametrize(
    ("made", "loop", "edits"),
    [
        ("target = nn.Linear(4, 2)", "target(x)", [(4, "target = nn.Linear(4, 2).to(device)")]),
        (
            "table = torch.eye(4)\ndef pick(i):\n    return table[i]",
            "pick(x.argmax(1))",
            [(4, "table = torch.eye(4).to(device)")],
        ),
        ("table = torch.eye(4)\nout = [table]", "x + table", [(5, "x + table.to(x.device)")]),
        (
            f"import copy\nnet = nn.Linear(4, 2)\n{EMA}",
            "average.update(net, net(x))",
            [(4, ""), (4, "average = Average(net)")],
        ),
    ],
    ids=["a model", "a table of a function", "a table that another line gives away", "a copy of a model"],
)
def test_an_edit_is_where_an_earlier_cell_made_the_tensor(
    made: str, loop: str, edits: list[tuple[int, str]], magic: str
) -> None:
    with new_shell("%load_ext devtrace", "%devtrace simulate cuda:1", CELL, made) as shell:
        shell.run(f"{magic}for _ in range(3):\n    x = torch.ones(1, 4).to(device)\n    {loop}")
        found = shell.traced[-1].report.findings[0].edits
    assert [(each.cell, each.after.strip()) for each in found] == edits


def test_an_error_that_a_cell_caught_has_its_edit_and_says_so() -> None:
    kept = STORE.format(line="self.layers = [nn.Linear(2, 2)]", use="layers[0](x)")
    with new_shell("%load_ext devtrace", "%devtrace simulate cuda:1") as shell:
        shell.run(CELL, kept, "net = Net().to(device)")
        ran = shell.run("%%devtrace\ntry:\n    net(torch.ones(1, 2).cuda())\nexcept RuntimeError:\n    pass")
    shown = " ".join(ran.text.split())
    assert "self.layers = nn.ModuleList([nn.Linear(2, 2)])" in shown
    assert "The program caught the error and went on." in shown
