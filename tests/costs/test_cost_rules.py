"""What costs time is told by what repeats with the steps of a loop, however it is written."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

import devtrace
from costs import GPU, descend, findings, healthy, warnings, warns
from devtrace.diagnosis.findings import Finding
from devtrace.trace.columns import LEDGER_COUNTS
from devtrace.trace.subset import cut
from devtrace.trace.tables import Lists, TraceData, Values
from failing import Text


def warned(program: Callable[[], object]) -> list[str]:
    return [finding.rule for finding in warnings(program)]


def train(each: Callable[[int, torch.Tensor], object], steps: int = 20) -> None:
    net = nn.Linear(8, 4).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        loss = net(torch.rand(16, 8, device=GPU)).square().mean()
        descend(optimizer, loss)
        if each(step, loss):
            break


@warns(rule="host-sync", count=20)
def test_a_loss_that_is_read_in_each_step_of_two_optimizers_is_a_warning() -> None:
    """One line steps both: that they take turns does not make it every second step."""
    nets = [nn.Linear(8, 4).to(GPU) for _ in range(2)]
    optimizers = [torch.optim.Adam(net.parameters()) for net in nets]
    history: list[float] = []
    for x in torch.rand(20, 16, 8, device=GPU):
        losses = [net(x).square().mean() for net in nets]
        for optimizer, loss in zip(optimizers, losses, strict=True):
            descend(optimizer, loss)
        history.append(losses[0].item())


@warns(rule="host-sync")
def test_an_update_count_on_the_device_that_is_compared_in_each_step_is_a_warning() -> None:
    class Throughput(nn.Module):
        seen: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.tensor(0))

        def update(self, outputs: torch.Tensor) -> int:
            self.seen += 1
            if self.seen >= 3:
                return outputs.shape[0]
            return 0

    net, metric = nn.Linear(8, 4).to(GPU), Throughput().to(GPU)
    for _ in range(12):
        metric.update(net(torch.rand(2, 8, device=GPU)))


def test_a_loop_without_modules_reads_now_and_then() -> None:
    def program(often: int) -> None:
        x = torch.ones(4, device=GPU)
        seen = []
        for step in range(400):
            x = x * 0.99 + 1
            if step % often == 0:
                value = x.sum().item()
                seen.append(value)

    assert warned(lambda: program(20)) == []
    assert warned(lambda: program(1)) == ["host-sync"]


@healthy
def test_a_small_model_is_moved_saved_and_loaded_without_a_warning() -> None:
    net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(30))).to(GPU)
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.ones(2, 8, device=GPU)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location="cpu")
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    net.cpu()


@warns(rule="device-to-host-copy", count=60)
def test_elements_copied_one_by_one_are_a_warning() -> list[torch.Tensor]:
    values = torch.rand(60, device=GPU) * 2
    return [values[i].cpu() for i in range(60)]


def _scaled_by_a_number() -> None:
    net = nn.Linear(8, 4).to(GPU)
    for _ in range(30):
        out = net(torch.rand(2, 8, device=GPU))
        torch.where(out > 0, out, torch.tensor(0.5).to(GPU)).sum()


def _scaled_by_a_list_of_one() -> None:
    net = nn.Linear(8, 4).to(GPU)
    for _ in range(30):
        out = net(torch.rand(2, 8, device=GPU))
        (out * torch.sqrt(torch.FloatTensor([0.5]).to(GPU))).sum()


@pytest.mark.parametrize("program", [_scaled_by_a_number, _scaled_by_a_list_of_one])
def test_numbers_copied_to_the_device_in_each_step_are_a_warning(program: Callable[[], None]) -> None:
    (found,) = warnings(program)
    assert (found.rule, found.count) == ("host-to-device-copy", 30)
    assert "is a single number" in found.message
    assert "each step" in found.message


def test_a_distributions_numbers_are_no_warning_and_its_checks_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> None:
        net = nn.Linear(8, 4).to(GPU)
        for _ in range(30):
            out = net(torch.rand(2, 8, device=GPU))
            torch.distributions.Normal(out, 0.1).log_prob(out.detach()).sum().backward()

    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # `torch.compile` ends it for good
    found = findings(program)
    assert {each.severity for each in found} == {"note"}
    assert found[0].help.startswith("create it with `validate_args=False`")


@healthy
def test_one_element_of_the_data_copied_in_each_step_is_no_warning() -> None:
    net = nn.Linear(1, 4).to(GPU)
    for step in range(30):
        net(torch.tensor([float(step)]).to(GPU)).sum()


@healthy
def test_copies_that_an_optimizer_of_torchs_makes_are_no_warning() -> None:
    net = nn.Linear(4, 8).to(GPU)
    optimizer = torch.optim.ASGD(net.parameters())
    for _ in range(20):
        net(torch.ones(3, 4, device=GPU)).sum().backward()
        optimizer.step()


@healthy
def test_tensors_that_an_offload_left_without_data_split_no_module() -> None:
    norm = nn.BatchNorm1d(4).to(GPU).eval()
    kept = dict(norm.named_parameters())

    def bring(*_: object) -> None:
        norm._parameters.update(kept)

    def leave(*_: object) -> None:
        norm._parameters.update({name: nn.Parameter(tensor.to("meta")) for name, tensor in kept.items()})

    leave()
    norm.register_forward_pre_hook(bring)
    norm.register_forward_hook(leave)
    for _ in range(2):
        norm(torch.ones(2, 4, device=GPU))


@healthy
def test_an_answer_to_whether_a_loop_is_to_end_is_needed() -> None:
    def is_over(left: torch.Tensor) -> bool:
        return bool(left.max() == 0)

    left = torch.full((4,), 30, device=GPU)
    while not is_over(left):
        left -= 1


def test_a_few_values_that_an_optimizer_on_the_cpu_hands_over_in_each_step_are_no_warning() -> None:
    def program() -> None:
        parameters = [torch.zeros(2, device=GPU) for _ in range(3)]

        def update(step: int) -> None:
            for parameter in parameters:
                parameter.copy_(torch.as_tensor(np.full(2, step), device=GPU, dtype=torch.float32))

        for step in range(30):
            update(step)
            for parameter in parameters:
                for _ in range(4):
                    parameter.sin().exp().sum()

    assert [each.message for each in findings(program) if "a few bytes" in each.message] == []


def test_a_number_written_by_a_mask_does_not_wait() -> None:
    def program() -> None:
        for _ in range(12):
            w = torch.rand(4, 8, device=GPU)
            w[w > 0.5] = 0.5
            w[:, w[0] > 0.5] = 1.0

    assert [each.rule for each in findings(program) if each.rule == "host-sync"] == []


def test_a_mask_on_the_cpu_is_counted_there() -> None:
    def program() -> None:
        w, mask = torch.rand(4, device=GPU), torch.tensor([True, False, True, False])
        for _ in range(12):
            w[mask].sum()

    assert [each.rule for each in findings(program) if each.rule == "host-sync"] == []


@warns(message=Text(ends=": `angles` is the same tensor each time."))
def test_one_view_of_a_tensor_that_is_copied_in_each_step_is_the_same_tensor() -> None:
    angles = torch.rand(6, 4).t()[1:]
    for _ in range(12):
        torch.rand(3, 6, device=GPU) * angles.to(GPU)


def test_a_tensor_written_by_a_mask_waits() -> None:
    def program() -> None:
        w = torch.rand(4, 8, device=GPU)
        w[w > 0.5] = torch.ones((), device=GPU)
        w[w > 2] = torch.ones(0, device=GPU)

    assert [each.count for each in findings(program) if each.rule == "host-sync"] == [1, 1]


Install = Callable[[str, str], ModuleType]
"""Returns a module, by its text and name, as pip would install it."""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def module_of(text: str, name: str) -> ModuleType:
        site_packages = tmp_path / "lib" / "site-packages"
        site_packages.mkdir(parents=True)
        (site_packages / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(site_packages))
        return importlib.import_module(name)

    return module_of


PACK = """
import torch
class Rising(torch.optim.SGD):
    def step(self, closure=None):
        total = 0.0
        for group in self.param_groups:
            for p in group["params"]:
                total = total + p.grad.abs().sum().item()
        self.total = total
        return super().step(closure)

class Tables(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cos, self.sin = torch.ones(16, 4), torch.zeros(16, 4)
    def forward(self, x):
        cos = self.cos[: x.shape[0]].to(x.device)
        sin = self.sin[: x.shape[0]].to(x.device)
        return x * cos + sin
"""


class Binned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        bins = torch.linspace(0, 1, 4)
        self.bins = bins[None]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.bins.to(x.device)


@warns(name="binned.bins", message=Text("`binned.bins` is the same tensor each time"))
def test_a_view_that_a_module_keeps_has_the_modules_name_for_it() -> None:
    binned, net = Binned(), nn.Linear(4, 4).to(GPU)
    for _ in range(12):
        binned(net(torch.rand(8, 4, device=GPU))).sum().backward()


def costs_of_packages(program: Callable[[], object]) -> dict[tuple[str, str], Finding]:
    every = findings(program)
    found = [each for each in every if each.site is not None and "site-packages" in each.site.file]
    assert [each for each in every if each.rule == "host-sync" and each not in found] == []  # no line of the user's
    assert len({(each.rule, each.site) for each in found}) == len(found)
    return {(each.rule, each.site.text): each for each in found if each.site is not None}


def train_with(pack: ModuleType, steps: int = 6) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to(GPU)
    tables, optimizer = pack.Tables(), pack.Rising(net.parameters(), lr=0.1)
    for _ in range(steps):
        tables(net(torch.rand(8, 4, device=GPU))).sum().backward()
        optimizer.step()


def test_a_cost_in_a_package_is_found_at_its_line_and_names_the_users(install: Install) -> None:
    pack = install(PACK, "costly_pack")
    found = costs_of_packages(lambda: train_with(pack))
    assert {key: (each.severity, each.count) for key, each in found.items()} == {
        ("host-sync", "p.grad.abs().sum().item()"): ("warning", 24),
        ("host-to-device-copy", "self.cos[: x.shape[0]].to(x.device)"): ("warning", 6),
        ("host-to-device-copy", "self.sin[: x.shape[0]].to(x.device)"): ("warning", 6),
    }
    sync, cos, sin = found.values()
    assert "It is in costly_pack, called from test_cost_rules.py line" in sync.message
    assert sync.message.endswith(": `optimizer.step()`.")
    assert sync.help.startswith("in costly_pack: ")
    assert "`tables.cos` is the same tensor each time. It is in costly_pack, called from" in cos.message
    assert "`tables.sin` is the same tensor each time." in sin.message
    assert cos.edits == ()
    assert "change it in a copy of your own, and report it there" in sync.help
    assert 'self.register_buffer("cos", ..., persistent=False)' in cos.help


def test_a_line_of_a_package_that_two_lines_of_the_users_lead_to_is_one_finding(install: Install) -> None:
    pack = install(PACK, "costly_pack_twice")

    def program() -> None:
        train_with(pack)
        net = nn.Linear(4, 4).to(GPU)
        optimizer = pack.Rising(net.parameters(), lr=0.1)
        for _ in range(6):
            net(torch.rand(8, 4, device=GPU)).sum().backward()
            optimizer.step()

    sync = costs_of_packages(program)["host-sync", "p.grad.abs().sum().item()"]
    assert sync.count == 24 + 12
    assert "(1 more line likewise): `optimizer.step()`." in sync.message


def test_the_count_of_a_packages_line_is_exact_above_max_ops(install: Install) -> None:
    pack = install(PACK, "costly_pack_folded")
    with devtrace.record(simulate="cuda:2", max_ops=400) as recording:
        train_with(pack, steps=60)
    assert recording.report.trace.truncated
    found = [each for each in recording.report.findings if each.site and "site-packages" in each.site.file]
    assert sorted((each.rule, each.count) for each in found) == [
        ("host-sync", 240),
        ("host-to-device-copy", 60),
        ("host-to-device-copy", 60),
    ]


CHECKED = """
import torch
class Checked(torch.nn.Linear):
    def forward(self, x):
        if (x > 1e9).any():
            raise ValueError
        return super().forward(x)
"""


@warns(
    rule="host-sync",
    count=12,
    message=Text(
        "`(x > 1e9).any()` made the CPU wait", "12 times, once in each step", "It is in checked_pack, called from"
    ),
)
def test_a_check_in_a_packages_module_is_found_in_the_users_loop(install: Install) -> None:
    net = install(CHECKED, "checked_pack").Checked(8, 4).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        descend(optimizer, net(torch.rand(2, 8, device=GPU)).sum())


CHOOSING = """
import torch
class Masked(torch.nn.Linear):
    def forward(self, x, mask):
        whole = bool(mask is None or mask.all())
        for each in (x,):
            if not torch.isnan(each).any():
                continue
            x = torch.nan_to_num(x)
        if mask is not None and mask.all():
            mask = None
        x = super().forward(x)
        groups = torch.arange(len(x), device=x.device)
        size = int(groups.max()) + 1
        x = x.new_zeros(size, x.shape[1]).index_add(0, groups, x)
        same = torch.equal(x, x + 1)
        if mask is None:
            return x * (2 if (x > 1e9).any() and not same else 1)
        return x * mask
"""


def a_package_goes_on_by_what_its_branches_ask(pack: Any) -> None:
    net = pack.Masked(8, 4).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        descend(optimizer, net(torch.rand(2, 8, device=GPU), torch.ones(2, 1, dtype=torch.bool, device=GPU)).sum())


STEPPING = """
import torch
class Schedule:
    def __init__(self, steps, device):
        self.times, self.sigmas = torch.arange(steps, 0, -1, device=device), torch.linspace(1, 0, steps + 1)
    def step(self, noise, time, x):
        before = int(time) - 1
        scale = torch.tensor(before, device=x.device) * self.sigmas[before].to(x.device)
        return x - noise * scale if before >= 0 else x
"""


def a_package_reads_as_it_likes_in_a_loop_that_trains_nothing(pack: Any) -> None:
    net, x = nn.Linear(8, 8).to(GPU), torch.rand(2, 8, device=GPU)
    schedule = pack.Schedule(20, GPU)
    with torch.no_grad():
        for time in schedule.times:
            x = schedule.step(net(x), time, x)


DIVIDING = """
import torch
def divide(over, under, otherwise=0.0):
    otherwise = torch.tensor(otherwise).float().to(under.device)
    return torch.where(under != 0, over / under, otherwise)
"""


@warns(rule="host-to-device-copy", count=20)
def test_a_number_that_a_package_makes_on_the_cpu_and_moves_is_a_cost(install: Install) -> None:
    pack, net = install(DIVIDING, "dividing_pack"), nn.Linear(8, 8).to(GPU)
    for _ in range(20):
        pack.divide(net(torch.rand(2, 8, device=GPU)), torch.ones(2, 8, device=GPU))


SEARCHING = """
import torch
def search(score, start, steps):
    x = start.clone().requires_grad_()
    optimizer, kept = torch.optim.SGD([x], lr=0.1), []
    for _ in range(steps):
        optimizer.zero_grad()
        scores = score(x)
        loss = scores[scores.detach() < 1e9].sum()
        kept.append(loss.detach().cpu())
        loss.backward()
        optimizer.step()
        if loss.item() > 1e9:
            raise ValueError
    return x.detach()
"""


def a_package_that_trains_on_its_own_reads_as_it_likes_in_a_loop_of_the_users_too(pack: Any) -> None:
    score, ex = nn.Linear(8, 1).to(GPU), pack.search  # its name is in that of `aten.index_put`
    for seed in range(3):
        start = torch.full((4, 8), float(seed), device=GPU)
        ex(score, start, 10)


AVERAGING = """
import torch
def fit(model, batches):
    shadow, seen = [p.detach().cpu() for p in model.parameters()], torch.tensor(0, device="cuda")
    for batch in batches:
        model(batch).sum().backward()
    for own, p in zip(shadow, model.parameters()):
        own += (p.detach().cpu() - own) / (seen.to(own.device) + 1)
"""


def a_few_bytes_that_a_package_copies_for_each_weight_after_its_loop_are_no_cost(pack: Any) -> None:
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4))).to(GPU)
    pack.fit(model, [torch.rand(2, 8, device=GPU) for _ in range(3)])


@healthy
def test_what_a_function_of_torchs_reads_in_a_loop_of_its_own_is_no_cost_of_the_line_that_calls_it() -> None:
    x = torch.rand(6, 6, device=GPU)
    symmetric = x @ x.T + torch.eye(6, device=GPU)
    value, vector = torch.lobpcg(symmetric, 1, niter=20, tol=1e-12)
    (symmetric @ vector - value * vector).norm()


@healthy
def test_the_lengths_that_torch_unpacks_go_where_their_mask_is_made() -> None:
    net = nn.LSTM(8, 8, batch_first=True).to(GPU)
    for _ in range(6):
        lengths = torch.tensor([3, 5])
        packed = nn.utils.rnn.pack_padded_sequence(
            torch.rand(2, 5, 8, device=GPU), lengths, batch_first=True, enforce_sorted=False
        )
        padded, lengths = nn.utils.rnn.pad_packed_sequence(net(packed)[0], batch_first=True)
        mask = torch.arange(5, device=GPU)[None] < lengths.to(GPU)[:, None]
        (padded * mask[..., None]).sum().backward()


TRAINER = """
import torch
def fit(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        if torch.isnan(loss):
            raise ValueError
"""


def a_loop_of_a_package_reads_as_it_likes(pack: Any) -> None:
    class Body(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.layer(x.to(GPU)) * 2
            return made

    model = Body().to(GPU)
    pack.fit(model, [torch.rand(2, 8, device=GPU) for _ in range(20)])


@pytest.mark.parametrize(
    ("text", "name", "program"),
    [
        (CHOOSING, "choosing_pack", a_package_goes_on_by_what_its_branches_ask),
        (STEPPING, "stepping_pack", a_package_reads_as_it_likes_in_a_loop_that_trains_nothing),
        (SEARCHING, "searching_pack", a_package_that_trains_on_its_own_reads_as_it_likes_in_a_loop_of_the_users_too),
        (AVERAGING, "averaging_pack", a_few_bytes_that_a_package_copies_for_each_weight_after_its_loop_are_no_cost),
        (TRAINER, "trainer_pack", a_loop_of_a_package_reads_as_it_likes),
    ],
)
def test_what_a_package_needs_is_no_cost(text: str, name: str, program: Any, install: Install) -> None:
    pack = install(text, name)
    assert warned(lambda: program(pack)) == []


@pytest.mark.parametrize("foreach", [True, False])
@healthy
def test_a_weight_that_a_step_has_changed_is_not_the_same_tensor(foreach: bool) -> None:
    net = nn.Linear(64, 32).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=foreach)
    for _ in range(8):
        for _ in range(4):
            descend(optimizer, net(torch.rand(2, 64, device=GPU)).sum())
        net.weight.detach().cpu()


@warns(edits=["weights = weights.to(GPU)"], help="move `weights` once, above the loop: `weights = weights.to(GPU)`")
def test_a_tensor_moved_in_each_step_is_moved_above_the_loop() -> None:
    weights = torch.ones(4)
    net = nn.Linear(8, 4).to(GPU)
    for _ in range(8):
        (net(torch.rand(2, 8, device=GPU)) * weights.to(GPU)).sum()


class Window(nn.Module):
    """A module that moves its window in each call."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.window = torch.ones(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.window.to(x.device)


def test_tensors_of_several_modules_that_one_line_copies_are_counted_and_none_is_called_the_same() -> None:
    def program() -> None:
        first, second = Window(4), Window(4)
        train(lambda _, loss: [each(loss.detach().expand(4)) for each in (first, second)] and None)

    (found,) = [each for each in findings(program) if each.rule == "host-to-device-copy" and each.severity == "warning"]
    assert "they are the same 2 tensors each time, `" in found.message


def sampled(trace: TraceData, recorded: npt.NDArray[np.bool_]) -> TraceData:
    """Return what a recording with a budget keeps: rows of some steps, and counts of the others."""
    counts = np.bincount(trace.ops.ints("site")[~recorded], minlength=len(trace.sites))
    sites = np.arange(len(counts))
    width = len(trace.devices)
    ops = np.zeros((len(sites), width), dtype=np.int64)
    ops[:, list(trace.devices).index(GPU)] = counts
    none = np.zeros(len(sites), dtype=np.int64)
    ledger: dict[str, Values] = dict.fromkeys(LEDGER_COUNTS, none)
    ledger |= {"site": sites, "ops": Lists(np.arange(0, ops.size + 1, width), ops.ravel())}
    part = cut(trace, recorded)
    return replace(part, findings=None, values={**part.values, "ledger": ledger})


@pytest.mark.parametrize("every", [1, 10])
def test_of_steps_of_which_some_were_recorded_all_count(every: int) -> None:
    def reads(step: int, loss: torch.Tensor) -> None:
        if step % every == 0:
            print(step, loss.item(), file=io.StringIO())

    with devtrace.record(simulate="cuda:2") as recording:
        train(reads, steps=20 * every)
    trace = recording.trace
    names = [op.name for op in trace.ops]
    zeroed = np.cumsum([name == "aten.rand" for name in names])
    in_step = np.where(zeroed > 0, (zeroed - 1) % every == 0, True)
    found = devtrace.diagnose(sampled(trace, in_step)).findings
    (severity,) = [finding.severity for finding in found if finding.rule == "host-sync"]
    assert severity == ("warning" if every == 1 else "note")


def normalised(features: torch.Tensor) -> torch.Tensor:
    array = features.detach().cpu().numpy()
    array = (array - array.mean(0)) / (array.std(0) + 1e-6)
    return torch.from_numpy(array.astype(np.float32)).to(features.device)


@warns(rule="device-to-host-copy", message=Text("what numpy computes from `features.detach()` goes back to the device"))
def test_what_numpy_works_out_over_several_lines_and_sends_back_is_a_warning() -> None:
    net = nn.Linear(8, 4).to(GPU)
    train(lambda *_: normalised(net(torch.rand(16, 8, device=GPU))) is None)


def assigned(scores: torch.Tensor, assign: Callable[[Any], Any]) -> torch.Tensor:
    table = scores.detach().cpu().numpy()
    rows = assign(table)
    return torch.from_numpy(rows).to(scores.device)


@healthy
def test_what_another_package_works_out_on_the_host_is_none() -> None:
    def matched(table: Any) -> Any:
        return np.array([int(row.argmax()) for row in table])

    net = nn.Linear(8, 4).to(GPU)
    train(lambda *_: assigned(net(torch.rand(16, 8, device=GPU)), matched) is None)


def _weights_by_numpy(x: torch.Tensor) -> torch.Tensor:
    weights = x.sum(1).cpu().numpy()
    for _ in range(30):
        x = x * 1.01
    order = np.argsort(weights) / len(weights)
    return (x * torch.from_numpy(order).float().to(GPU).unsqueeze(1)).sum()


def _weights_by_torch(x: torch.Tensor) -> torch.Tensor:
    weights = x.sum(1).cpu()
    for _ in range(500):
        x = x * 1.01
    return (x * weights.sort().values.cumsum(0).to(GPU).unsqueeze(1)).sum()


@pytest.mark.parametrize("weigh", [_weights_by_numpy, _weights_by_torch])
@warns(rule="device-to-host-copy", count=8, message=Text("goes back to the device"))
def test_what_the_host_computes_is_found_however_much_the_device_does_meanwhile(weigh: Any) -> None:
    for _ in range(8):
        weigh(torch.rand(64, 100, device=GPU))


@healthy
def test_states_that_are_kept_on_the_host_and_drawn_from_later_may_go_there() -> None:
    net = nn.Linear(64, 64).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept: list[torch.Tensor] = []
    state = torch.rand(64, device=GPU)
    for step in range(100):
        kept.append(state.cpu())
        picked = [kept[i] for i in torch.randint(0, step + 1, (4,)).tolist()]
        descend(optimizer, net(torch.stack(picked).to(GPU)).square().mean())
        state = state * 0.9 + torch.rand(64, device=GPU)
