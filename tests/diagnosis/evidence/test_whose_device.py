"""Programs with two devices or a written state: which tensor is odd, and an edit that keeps what the program means."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

import devtrace
from failing import BOTH, Text, both, culprit_of, edits_of, error_of, fails

# Two accelerators.


@fails(name="soft")
def test_scores_of_a_teacher_come_to_where_the_student_learns() -> None:
    student, teacher = nn.Linear(4, 2).to("cuda:0"), nn.Linear(4, 2).to("cuda:1")
    rows = torch.rand(3, 4)
    with torch.no_grad():
        soft = teacher(rows.to("cuda:1")).softmax(-1)
    nn.functional.kl_div(student(rows.to("cuda:0")).log_softmax(-1), soft)


@fails(name="goal")
def test_weights_that_were_copied_to_a_device_do_not_take_the_computation_there() -> None:
    learner = nn.Linear(4, 2).to("cuda:0")
    target = copy.deepcopy(learner).to("cuda:1")
    rows = torch.rand(3, 4)
    with torch.no_grad():
        goal = target(rows.to("cuda:1")).amax(1)
    now = learner(rows.to("cuda:0")).amax(1)
    goal - now


# State that is written in place.


class Momentum:
    def __init__(self, count: int) -> None:
        self.state = [torch.zeros(4) for _ in range(count)]

    def add(self, gradients: list[torch.Tensor]) -> None:
        for m, gradient in zip(self.state, gradients, strict=True):
            m.mul_(0.9).add_(gradient)


@fails(cause="never-moved", edits=['momentum.state = [each.to("cuda") for each in momentum.state]'])
def test_a_loop_variable_that_is_written_is_not_replaced_by_a_moved_copy() -> None:
    momentum = Momentum(3)
    momentum.add([torch.ones(4, device="cuda") for _ in range(3)])


class Average:
    def __init__(self, parameters: Any) -> None:
        self.kept = [p.detach().cpu() for p in parameters]

    def update(self, parameters: Any) -> None:
        for kept, p in zip(self.kept, parameters, strict=True):
            kept.lerp_(p.detach(), 0.1)


@fails(cause="wrong-device", edits=["self.kept = [p.detach().clone() for p in parameters]"])
def test_a_copy_that_was_sent_to_the_cpu_stays_a_copy_where_it_is_left_on_the_device() -> None:
    model = nn.Linear(4, 2).cuda()
    average = Average(model.parameters())
    average.update(model.parameters())


# Calls in which the op failed.


def test_the_result_of_the_call_that_failed_is_not_moved() -> None:
    def program() -> None:
        params, buffers = stack_module_state([nn.Linear(3, 1) for _ in range(2)])
        base = nn.Linear(3, 1).to("meta")

        def call(params: Any, buffers: Any, rows: torch.Tensor) -> Any:
            return functional_call(base, (params, buffers), (rows,))

        vmap(call, in_dims=(0, 0, None))(params, buffers, torch.rand(4, 3, device="cuda"))

    finding = error_of(program)
    assert culprit_of(finding).name == 'params["weight"]'
    assert not [line for line in edits_of(finding) if "(rows,)).to(" in line]


# What a module makes when it has moved.


class Bank(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.tables: dict[int, torch.Tensor] = {}

    def table(self, count: int) -> torch.Tensor:
        if count not in self.tables:
            self.tables[count] = torch.from_numpy(np.arange(count * 4.0).reshape(count, 4)).float()
        return self.tables[count]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.lin(x) + self.table(len(x))
        return made


@fails(cause="never-moved", name="bank.tables[3]", moved=None)
def test_no_move_missed_what_a_module_made_after_it() -> None:
    bank = Bank()
    bank.cuda()
    bank(torch.rand(3, 4, device="cuda"))


class Pruned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.mask = torch.ones(4)

    def prune(self, keep: int) -> None:
        self.mask = (torch.arange(4) < keep).float()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        masked: torch.Tensor = self.lin(x) * self.mask
        return masked


@fails(
    cause="created-without-device",
    edits=["self.mask = (torch.arange(4, device=next(self.parameters()).device) < keep).float()"],
)
def test_what_a_method_made_after_the_move_wants_a_device_and_no_buffer() -> None:
    model = Pruned().cuda()
    model.prune(2)
    model(torch.rand(2, 4, device="cuda"))


class Smooth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.last: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.lin(x)
        if self.last is not None:
            y = y + self.last
        self.last = y.detach().cpu()
        return y


def two_calls() -> None:
    smooth = Smooth().cuda()
    for _ in range(2):
        smooth(torch.rand(2, 4, device="cuda"))


def test_what_a_modules_call_sent_to_the_cpu_was_put_there() -> None:
    assert error_of(two_calls).cause == "wrong-device"


def test_what_a_modules_call_sent_to_the_cpu_was_put_there_by_the_source_alone() -> None:
    with devtrace.simulate("cuda:1"), pytest.raises(RuntimeError) as raised:
        two_calls()
    finding = devtrace.explain(raised.value).findings[0]
    assert finding.cause == "wrong-device"
    assert edits_of(finding) == ["self.last = y.detach().clone()"]


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.ModuleDict()
        self.stem = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, key: str) -> Any:
        if key not in self.pool:
            self.pool[key] = nn.Linear(4, 4)
        return self.pool[key](self.stem(x))


@fails(cause="attached-after-move", edits=["self.pool[key] = nn.Linear(4, 4).to(x.device)"])
def test_a_part_put_into_an_empty_container_takes_the_device_of_the_whole() -> None:
    experts = Experts().cuda()
    experts(torch.rand(2, 4, device="cuda"), "first")


class Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        mask = torch.rand(x.shape) > 0.5
        ctx.save_for_backward(mask)
        return x * mask.to(x.device)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient * ctx.saved_tensors[0]


@fails(cause="created-without-device")
def test_what_a_function_of_autograd_made_for_its_backward_wants_a_device() -> None:
    x = torch.rand(2, 4, device="cuda", requires_grad=True)
    apply: Any = Drop.apply
    apply(x).sum().backward()


# Moved copies that nobody kept.


class Batch:
    def __init__(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        self.rows, self.labels = rows, labels

    def to(self, device: str) -> Batch:
        return Batch(self.rows.to(device), self.labels.to(device))


@fails(cause="never-moved", name="batch.rows", edits=['batch = batch.to("cuda")'])
def test_a_batch_that_makes_a_moved_batch_is_to_be_replaced_by_it() -> None:
    model = nn.Linear(4, 2).cuda()
    batch = Batch(torch.rand(3, 4), torch.zeros(3))
    batch.to("cuda")
    model(batch.rows)


# Moves that tell nothing.


@fails(cause="never-moved", name="lengths", moved=None)
def test_the_move_of_a_layer_left_no_tensor_behind_beside_its_result() -> None:
    lengths = torch.tensor([2, 3])
    layer = nn.Linear(4, 4).cuda()
    scores = layer(torch.rand(2, 4, device="cuda"))
    torch.lt(scores.sum(1), lengths)


@fails(edits=["average.to(device)"])
def test_a_copy_that_is_asked_to_be_on_the_cpu_is_not_made_later_instead() -> None:
    device = "cuda"
    model = nn.Linear(4, 2)
    average = torch.optim.swa_utils.AveragedModel(model, device="cpu")  # type: ignore[arg-type]
    model.to(device)
    average(torch.rand(2, 4, device=device))


def test_no_edit_of_the_failing_line_is_for_an_op_of_another() -> None:
    def program() -> None:
        device = "cuda"
        model = nn.Linear(4, 2)
        average = torch.optim.swa_utils.AveragedModel(model, device="cpu")  # type: ignore[arg-type]
        model.to(device)
        for _ in range(2):
            average.update_parameters(model)
        average(torch.rand(2, 4, device=device))

    assert not [line for line in edits_of(error_of(program)) if ".to(device)" in line and "rand" in line]


# Waits.


def test_a_list_that_is_indexed_by_a_tensor_waits_to_read_it() -> None:
    names = ["a", "b", "c"]
    with devtrace.record(simulate="cuda:1") as recording:
        model = nn.Linear(4, 3).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(12):
            scores = model(torch.rand(2, 4, device="cuda"))
            scores.sum().backward()
            optimizer.step()
            for guess in scores.argmax(-1):
                names[guess]
    found = next(each for each in recording.report.findings if each.rule == "host-sync")
    assert found.message == (
        "`names[guess]` made the CPU wait for cuda:0 24 times, in each step, to read one element of "
        "`scores.argmax(-1)` at a time."
    )
    assert "`scores.argmax(-1).tolist()`" in found.help


class Bins:
    """Plain object that makes its parts with one another's device, and has no `to`."""

    def __init__(self, count: int) -> None:
        self.centers = torch.linspace(-1, 1, count)
        low = torch.tensor([-9.0], device=self.centers.device)
        self.edges = torch.cat((low, (self.centers[1:] + self.centers[:-1]) / 2))
        self.start = torch.zeros(count, device=self.centers.device)


@pytest.mark.parametrize("part", ["edges", "start"])
@both
def test_a_tensor_that_takes_the_device_of_another_of_its_function_asks_for_none(part: str, found: Any) -> None:
    def program() -> None:
        bins = Bins(5)
        x = torch.rand(5, device="cuda")
        torch.bucketize(x, bins.edges) if part == "edges" else x + bins.start

    finding = found(program)
    assert (finding.cause, culprit_of(finding).name) == ("never-moved", f"bins.{part}")


# Tensors that torch makes in C++, whose device the simulation learns at their first use.


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 2)

    def forward(self, documents: list[list[int]]) -> torch.Tensor:
        ids = nn.utils.rnn.pad_sequence([torch.tensor(each) for each in documents], batch_first=True)
        return torch.as_tensor(self.words(ids))


@fails(cause="created-without-device", name="ids")
def test_sequences_that_were_padded_on_the_host_are_named() -> None:
    Bag().to("cuda:0")([[1, 2], [3]])


def test_a_batch_that_was_padded_on_the_host_is_copied_from_there() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        torch.ones(2, device="cuda:0").add(1)
        rows = [torch.ones(2), torch.ones(3)]
        nn.utils.rnn.pad_sequence(rows).to("cuda:0")
    crossings = [(str(copy.from_), str(copy.to)) for copy in recording.trace.copies]
    assert crossings == [("cpu", "cuda:0")]


# The variable that names the device.


def by_its_usual_name() -> None:
    device = torch.device("cuda")
    net = nn.Linear(4, 2, device="cpu")
    net(torch.ones(3, 4).to(device))


def by_another_name() -> None:
    gpu = torch.device("cuda")
    net = nn.Linear(4, 2, device="cpu")
    net(torch.ones(3, 4).to(gpu))


def by_a_word_argument() -> None:
    where = "cuda"
    net = nn.Linear(4, 2, device="cpu")
    net(torch.ones(3, 4, device=where))


@pytest.mark.parametrize("program", [by_its_usual_name, by_another_name, by_a_word_argument])
def test_the_device_is_the_one_that_the_work_is_sent_to_whatever_its_variable_is_called(
    program: Callable[[], None],
) -> None:
    assert error_of(program).devices == ("cuda:0", "cpu")


@fails(devices=("cuda:0", "cpu"))
def test_a_variable_that_results_are_brought_to_the_cpu_by_is_not_the_device_of_the_work() -> None:
    back = torch.device("cpu")
    net = nn.Linear(4, 2).cuda()
    first = net(torch.ones(3, 4, device="cuda")).to(back)
    net(first)


class Schedule:
    def __init__(self) -> None:
        self.alphas = torch.linspace(1, 0.1, 10)

    def noisy(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        share = self.alphas[steps].view(-1, 1)
        return share * x


def sample(device: str) -> torch.Tensor:
    schedule = Schedule()
    return schedule.noisy(torch.rand(16, 4, device=device), torch.randint(0, 10, (16,)))


@fails(*BOTH, name="schedule.alphas", edits=["schedule.alphas = schedule.alphas.to(device)"])
def test_what_an_index_picked_was_made_of_the_table_however_many_indexes_there_are() -> None:
    sample("cuda:0")


def is_right(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return scores.argmax(1) == target


def evaluated(device: str) -> torch.Tensor:
    net = nn.Linear(5, 4).to(device)
    x, y = torch.rand(6, 5), torch.randint(0, 4, (6,))
    scores = net(x.to(device))
    nn.functional.cross_entropy(scores, y.to(device)).backward()
    return is_right(scores, y)


@fails(message=Text("uses a copy of it on cuda:0; the tensor itself stayed on cpu."))
def test_a_tensor_of_which_a_line_used_a_moved_copy_is_no_copy_itself() -> None:
    evaluated("cuda:0")


def counting_loss(classes: int) -> Callable[[torch.Tensor], torch.Tensor]:
    counts = torch.ones(classes)

    def loss(labels: torch.Tensor) -> torch.Tensor:
        return counts + torch.bincount(labels, minlength=3)

    return loss


@fails(moved=None, message=Text("Nothing moved it to cuda:0."))
def test_an_argument_that_was_moved_left_nothing_of_a_closure_behind() -> None:
    criterion = counting_loss(3)
    labels = torch.randint(0, 3, (6,)).to("cuda:0")
    criterion(labels)


def uniform(count: int) -> torch.Tensor:
    return torch.ones(count) / count


def transported(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    mu, nu = uniform(len(a)), uniform(len(b))
    u, v = torch.zeros_like(mu), torch.zeros_like(nu)
    for _ in range(2):
        u = mu.log() - (torch.cdist(a, b) + v).logsumexp(1)
        v = nu.log() - (torch.cdist(a, b) + u[:, None]).logsumexp(0)
    return v


@fails(*BOTH, edits=["mu, nu = uniform(len(a)).to(a.device), uniform(len(b)).to(b.device)"])
def test_values_that_one_line_makes_alike_are_moved_there_and_what_is_made_of_them_follows() -> None:
    transported(torch.rand(4, 3, device="cuda:0"), torch.rand(5, 3, device="cuda:0"))
