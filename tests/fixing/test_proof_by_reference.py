"""A patch is held against the program on one memory: what differs from it is not proven, and another fix is tried."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from devtrace.fixing.compared import ReferenceRun
from devtrace.fixing.rounds import ProgramRun, Rounds
from fix_rounds import fixed, story
from programs import Program
from warm import Warm

pytestmark = pytest.mark.slow
HEAD = "import copy\nimport torch\nfrom torch import nn\n\n"


def fixed_text(warm: Warm, folder: Path, text: str, simulate: str = "cuda:2") -> tuple[Rounds, str]:
    """Return the rounds of a program's `run("cuda:0")`, and the program as it then is."""
    path = folder / "train.py"
    path.write_text(HEAD + dedent(text))
    rounds, _ = fixed(warm, Program(path, ("cuda:0",), simulate))
    after = rounds.texts.get(str(path))
    return rounds, after.data.decode() if after is not None else ""


EARLY = """
    class Wrapped(nn.Module):
        def __init__(self, inner, device):
            super().__init__()
            self.inner, self.device = inner, device

    def run(device):
        torch.manual_seed(0)
        student = nn.Linear(3, 3)
        teacher = copy.deepcopy(student)
        student = Wrapped(student.to(device), device)
        with torch.no_grad():
            for mean, value in zip(teacher.parameters(), student.inner.parameters()):
                mean.lerp_(value + 1, 0.5)
        return list(teacher.parameters())
"""
BRANCH = """
    class Average:
        def __init__(self, net):
            self.net = copy.deepcopy(net)

    def run(device, resumed=None):
        torch.manual_seed(0)
        net = nn.Linear(3, 3)
        average = Average(net)
        net.to(device)
        if resumed is not None:
            average = Average(resumed)
        with torch.no_grad():
            for mean, value in zip(average.net.parameters(), net.parameters()):
                mean.lerp_(value + 1, 0.5)
        return list(average.net.parameters())
"""
FRAMEWORK = """
    class Trainer:
        def __init__(self, net, costs, device):
            self.net, self.costs = net.to(device), costs

        def fit(self, x, y):
            return nn.functional.cross_entropy(self.net(x), y, weight=self.costs.of_class)

    class Costs:
        def __init__(self, classes):
            self.of_class = torch.arange(1.0, 1 + classes)

    def run(device):
        torch.manual_seed(0)
        net = nn.Linear(4, 3)
        costs = Costs(3)
        trainer = Trainer(net, costs, device)
        y = torch.tensor([0, 2], device=device)
        return trainer.fit(torch.ones(2, 4, device=device), y).item()
"""
STATE = """
    class Running(torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {})

        @torch.no_grad()
        def step(self):
            for p in self.param_groups[0]["params"]:
                state = self.state[p]
                if not state:
                    state["square"] = torch.zeros(p.shape)
                square = state["square"]
                square.mul_(0.5).add_(p.grad.square(), alpha=0.5)
                p.addcdiv_(p.grad, square.sqrt() + 1e-3, value=-0.1)

    def run(device):
        torch.manual_seed(0)
        net = nn.Linear(3, 2).to(device)
        rule = Running(net.parameters())
        for _ in range(3):
            rule.zero_grad()
            net(torch.ones(4, 3, device=device)).sum().backward()
            rule.step()
        return [*net.parameters(), *(each["square"] for each in rule.state.values())]
"""
BOUND_IN_ONE_BRANCH = """
    def scores(x, lengths, device):
        if lengths is not None:
            data = x[: lengths[0]]
            size = data.shape[1]
        else:
            size = x.shape[1]
        bias = torch.ones(size)
        return x * bias

    def run(device):
        return scores(torch.ones(3, 2, device=device), [2], device).sum().item()
"""


@pytest.mark.parametrize(
    "text",
    [EARLY, BRANCH, FRAMEWORK, STATE, BOUND_IN_ONE_BRANCH],
    ids=["early", "branch", "framework", "state", "bound"],
)
def test_a_patch_leaves_the_values_that_were_meant(text: str, warm: Warm, tmp_path: Path) -> None:
    rounds, _ = fixed_text(warm, tmp_path, text)
    assert (rounds.is_proven, rounds.last.ending) == (True, "ended"), story(rounds)
    assert rounds.compared is not None
    assert rounds.compared.is_proof, story(rounds)
    assert {edit.grade for change in rounds.changes for edit in change.finding.edits} == {"proven"}
    assert all(change.finding.proof for change in rounds.changes)


def test_a_name_that_one_branch_alone_gives_a_value_is_in_no_edit(warm: Warm, tmp_path: Path) -> None:
    _, after = fixed_text(warm, tmp_path, BOUND_IN_ONE_BRANCH)
    assert "data.device" not in after


def test_a_patch_that_changes_values_names_them_and_is_only_safe(warm: Warm, tmp_path: Path) -> None:
    """Layers of a plain list, which from the patch on are trained."""
    rounds, after = fixed_text(
        warm,
        tmp_path,
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(3, 3)
                self.rest = [nn.Linear(3, 3) for _ in range(2)]

            def forward(self, x):
                x = self.first(x)
                for layer in self.rest:
                    x = layer(x)
                return x

        def run(device):
            torch.manual_seed(0)
            net = Net().to(device)
            rule = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(2):
                rule.zero_grad()
                net(torch.ones(2, 3, device=device)).sum().backward()
                rule.step()
            return [*net.first.parameters(), *net.rest[0].parameters()]
        """,
    )
    assert "ModuleList" in after
    assert rounds.compared is not None
    assert (rounds.compared.is_alike, rounds.compared.is_proof) == (True, False)
    assert {edit.grade for change in rounds.changes for edit in change.finding.edits} == {"tried"}
    assert "returned[" in str(rounds.changes[0].finding.proof)


def test_a_patch_that_lets_parameters_be_trained_is_not_given_up_for_one_with_the_values_of_before(
    warm: Warm, tmp_path: Path
) -> None:
    """Moved by hand the list would have the reference's values, untrained as there."""
    rounds, after = fixed_text(
        warm,
        tmp_path,
        """
        class Factors(nn.Module):
            def __init__(self, ranks):
                super().__init__()
                self.base = nn.Linear(3, 2)
                self.factors = [nn.Parameter(torch.ones(3, rank)) for rank in ranks]

            def forward(self, x):
                return self.base(x) + sum((x @ each).sum(-1, keepdim=True) for each in self.factors)

        def run(device):
            torch.manual_seed(0)
            model = Factors([2, 3]).to(device)
            rule = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(2):
                rule.zero_grad()
                model(torch.ones(2, 3, device=device)).sum().backward()
                rule.step()
            return [*model.base.parameters(), *model.factors]
        """,
    )
    assert "self.factors = nn.ParameterList([" in after
    assert {edit.grade for change in rounds.changes for edit in change.finding.edits} == {"tried"}


def test_what_two_runs_of_one_program_do_not_share_is_no_difference() -> None:
    clock = iter(range(1, 9))
    reference = ReferenceRun(
        lambda: ProgramRun("ended", (), values={"time": next(clock), "loss": 0.5}, output="took 3 s")
    )
    compared = reference.compared(ProgramRun("ended", (), values={"time": 7, "loss": 0.5}, output="took 3 s"))
    assert compared.is_proof
    assert not reference.compared(ProgramRun("ended", (), values={"time": 7, "loss": 0.6}, output="took 3 s")).is_proof


def test_a_reference_that_ends_otherwise_than_the_patched_program_is_run_once() -> None:
    made: list[ProgramRun] = []

    def run() -> ProgramRun:
        made.append(ProgramRun("raised", (), raised="RuntimeError: expected Float", values={"loss": 1.0}))
        return made[-1]

    compared = ReferenceRun(run).compared(ProgramRun("ended", (), values={"loss": 2.0}))
    assert (compared.is_alike, len(made)) == (False, 1)
    assert "the program ends early with RuntimeError even if all devices are one" in str(compared)


KEPT = """
    def run(device):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 8)).to(device)
        drift, data = [], torch.randn(4096, 64, device=device)
        for _ in range(60):
            drift.append(net(data[:128]).abs().mean())
        return [each.item() for each in drift]
"""


def test_a_fix_of_memory_is_proven_by_the_values_of_a_run_with_room_and_by_a_lower_peak(
    warm: Warm, tmp_path: Path
) -> None:
    rounds, after = fixed_text(warm, tmp_path, KEPT, "cuda:1,20MB")
    assert ".abs().mean().detach())" in after
    (change,) = rounds.changes
    assert {edit.grade for edit in change.finding.edits} == {"proven"}
    assert "as with all the memory that it asks for" in str(change.finding.proof)
    peak = rounds.compared.peak if rounds.compared is not None else None
    assert peak is not None
    assert (peak.device, peak.before >> 20, peak.after >> 20) == ("cuda:0", 32, 2)
