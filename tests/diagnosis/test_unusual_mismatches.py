"""Mismatches that are not as usual: the CPU was meant, an error stands for another, state outlived a move."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import devtrace
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.findings import Site
from failing import BOTH, Text, culprit_of, error_of, fails, report_of
from odd_programs import Halved, Lent, Painted, Scaled
from trees import parsed


@fails(cause="created-without-device", name="torch.ones(3, 4)")
def test_a_name_that_pytest_gives_to_a_piece_of_an_assert_is_none() -> None:
    model = nn.Linear(4, 2).to("cuda:0")
    assert model(torch.ones(3, 4)).shape == (3, 2)


# Which device is meant.


@fails(cause="wrong-device", name="rows", devices=("cpu", "cuda:0"), edits=["rows = torch.rand(2, 4).to(device)"])
def test_a_batch_on_the_accelerator_is_odd_where_the_only_device_variable_is_cpu() -> None:
    device = "cpu"
    model = nn.Linear(4, 2).to(device)
    rows = torch.rand(2, 4).cuda()
    model(rows)


@fails(
    cause="wrong-device", name="rows", devices=("cuda:1", "cuda:0"), born="self.image = torch.rand(2, 4).to(DEFAULT)"
)
def test_of_two_accelerators_the_one_that_the_program_names_is_expected() -> None:
    device = torch.device("cuda:1")
    model = nn.Linear(4, 2).to(device)
    for _ in range(3):
        rows = Painted().image * 2 + 1
    model(rows)


@fails(cause="wrong-device", name="model.weight", born="model.cuda()", edits=["model.to(device)"])
def test_a_model_is_odd_that_a_bare_cuda_took_from_the_device_that_the_program_names() -> None:
    device = torch.device("cuda:1")
    model = nn.Linear(4, 2).to(device)
    rows = torch.rand(2, 4, device=device)
    model.cuda()
    model(rows)


@fails(name="torch.zeros( 1, 4, )")
def test_an_expression_over_several_lines_is_named_in_one() -> None:
    rows = torch.rand(2, 4, device="cuda:1")
    torch.cat((
        torch.zeros(
            1, 4,
        ),
        rows,
    ))  # fmt: skip


@fails(name="rows")
def test_what_was_sent_on_to_the_second_device_is_not_odd_though_a_variable_names_the_first() -> None:
    device = torch.device("cuda:0")
    first, second = nn.Linear(4, 4).to(device), nn.Linear(4, 4).to("cuda:1")
    rows = torch.rand(2, 4, device=device)
    second(first(rows).to("cuda:1")) + rows


def restored(device: str) -> nn.Module:
    return nn.Linear(4, 2, device=device)


@fails(cause="wrong-device", devices=("cpu", "cuda:0"), message=Text('policy = restored(device="cpu")'))
def test_the_device_that_a_model_was_given_on_its_own_line_decides() -> None:
    policy = restored(device="cpu")
    for rows in [torch.rand(2, 4, device="cuda:0")]:
        policy(rows)


class Schedule:
    def __init__(self, steps: int, device: str = "cpu") -> None:
        self.device = device
        self.table = torch.linspace(0, 1, steps, device=device)

    def at(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.table


@fails(name="schedule.table", devices=("cuda:0", "cpu"))
def test_a_default_that_nobody_wrote_down_does_not_ask_for_the_cpu() -> None:
    schedule = Schedule(4)
    schedule.at(torch.rand(4).cuda())


class HardCoded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(len(x), 4).cuda()
        y: torch.Tensor = self.second(self.first(x)) + state
        return y


@fails(cause="wrong-device", name="state", devices=("cpu", "cuda:0"))
def test_what_a_module_on_the_cpu_puts_on_the_accelerator_by_itself_is_odd() -> None:
    model = HardCoded()
    model(torch.rand(2, 4))


@fails(devices=("cuda:0", "cpu"))
def test_a_variable_for_the_cpu_beside_a_model_on_the_accelerator_decides_nothing() -> None:
    cpu_device = torch.device("cpu")
    model = nn.Linear(4, 2).cuda()
    rows = torch.rand(2, 4, device=cpu_device)
    model(rows)


@fails(name="model.weight", message=Text("If you meant cpu", "rows = torch.rand(2, 4).cuda()"))
def test_both_sides_are_named_where_nothing_shows_which_device_is_meant() -> None:
    model = nn.Linear(4, 2)
    rows = torch.rand(2, 4).cuda()
    model(rows)


@fails(*BOTH, name="layer.weight", devices=("cpu", "meta"), edits=[], help=Text("assign=True"))
def test_a_tensor_without_data_is_the_odd_one_and_nothing_is_moved_to_meta() -> None:
    with torch.device("meta"):
        layer = nn.Linear(4, 2)
    layer(torch.rand(2, 4))


# Errors that stand for another one.


class StepFailedError(Exception):
    pass


def forward(model: nn.Module, rows: torch.Tensor) -> Any:
    return model(rows)


def training(reraise: Callable[[Exception], Exception]) -> None:
    device = torch.device("cuda:0")
    model = nn.Linear(4, 2)
    rows = torch.rand(2, 4, device=device)
    try:
        forward(model, rows)
    except RuntimeError as error:
        raise reraise(error) from error


@fails(raises=StepFailedError, name="model.weight", edits=["model.to(device)"])
def test_the_frames_of_the_cause_are_read_where_another_error_replaced_it() -> None:
    training(lambda _: StepFailedError("step 3"))


@fails(raises=StepFailedError, rule="host-conversion", name="scores")
def test_a_call_that_torch_refused_is_found_behind_the_error_raised_from_it() -> None:
    scores = torch.rand(3, device="cuda:0")
    try:
        scores.numpy()
    except TypeError as error:
        raise StepFailedError("no scores") from error


@fails(cause="never-moved")
def test_an_error_that_was_handled_before_is_not_taken_for_the_cause() -> None:
    try:
        raise KeyError("no cache")
    except KeyError:
        model = nn.Linear(4, 2)
        model(torch.rand(2, 4, device="cuda:0"))


# What is kept from before.


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.hidden = torch.zeros(1, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(self.hidden) < len(x):
            self.hidden = torch.cat([self.hidden, self.hidden.new_zeros(len(x) - len(self.hidden), 4)])
        y: torch.Tensor = self.layer(x) + self.hidden
        return y


@fails(cause="not-registered", born="self.hidden = torch.zeros(1, 4)")
def test_state_made_of_an_unregistered_attribute_is_not_created_in_the_computation() -> None:
    Recurrent().to("cuda:0")(torch.rand(3, 4, device="cuda:0"))


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.seen: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        width = x.shape[1]
        if width not in self.seen:
            self.seen[width] = torch.arange(4.0, device=x.device)
        self.seen[width] = self.seen[width] + 1
        y: torch.Tensor = self.layer(x) + self.seen[width]
        return y


@fails(cause="stale-copy")
def test_state_made_of_a_cache_of_a_dry_run_is_stale() -> None:
    model = Counted()
    model(torch.rand(2, 4))
    model.to("cuda:0")
    model(torch.rand(2, 4, device="cuda:0"))


class Ramped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.ramp = torch.arange(4.0)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        grad: torch.Tensor = grads[0] * ctx.ramp
        return grad


@fails(cause="created-without-device", name="ctx.ramp", born="ctx.ramp = torch.arange(4.0)")
def test_what_an_autograd_function_keeps_in_ctx_is_named_with_the_line_of_its_forward() -> None:
    y: Any = Ramped.apply(torch.rand(4, device="cuda:0", requires_grad=True))  # type: ignore[no-untyped-call]
    y.sum().backward()


@fails(cause="wrong-device", born="self.rows = self.rows.cpu()")
def test_a_table_that_a_with_block_took_back_before_backward_names_the_line_that_took_it() -> None:
    table = Lent()
    x = torch.rand(4, device="cuda:0", requires_grad=True)
    with table:
        y: Any = checkpoint(lambda each: (each * table.rows).sin(), x, use_reentrant=False)
    y.sum().backward()


class Spectrum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.window = torch.hann_window(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x * self.gain, 32, 8, 16, self.window, return_complex=True)


@fails(cause="not-registered", name="self.window")
def test_a_window_that_stft_would_pad_is_named() -> None:
    Spectrum().to("cuda:0")(torch.rand(2, 256, device="cuda:0"))


@pytest.fixture
def _default_device() -> Iterator[None]:
    yield
    torch.set_default_device(None)


@pytest.mark.usefixtures("_default_device")
@fails(cause="never-moved", name="weights", message=Text("from numpy"))
def test_the_default_device_does_not_reach_memory_of_numpy() -> None:
    torch.set_default_device("cuda:0")
    weights = torch.from_numpy(np.ones(4, np.float32))
    torch.rand(4) * weights


# Replicas.


class Replicated(nn.Module):
    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.cell = nn.GRUCell(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(len(x), 6, device=self.device)
        y: torch.Tensor = self.cell(x, state)
        return y


@fails(cause="wrong-device", name="state")
def test_the_line_that_waits_for_replicas_gives_no_name_to_their_tensors() -> None:
    first = torch.device("cuda:0")
    nn.DataParallel(Replicated(first).to(first), device_ids=[0, 1])(torch.rand(4, 4).to(first))


# Names.


@fails(cause="created-without-device", name="torch.ones(3)", edits=["(w * 2).backward(torch.ones(3, device=w.device))"])
def test_a_gradient_on_the_wrong_device_that_backward_refuses_is_explained() -> None:
    w = torch.rand(3, device="cuda:0", requires_grad=True)
    (w * 2).backward(torch.ones(3))


@fails(
    cause="wrong-device",
    name="back",
    devices=("cuda:0", "cpu"),
    born="back = gradient.cpu() / 2",
    edits=[],
    message=Text(begins="`back` is on cpu; backward needs this gradient on cuda:0."),
)
def test_a_gradient_that_a_function_of_the_users_returned_on_the_wrong_device_is_named() -> None:
    x = torch.ones(3, device="cuda:0", requires_grad=True)
    scale = torch.ones(3, device="cuda:0", requires_grad=True)
    Halved.apply(x, scale).sum().backward()  # type: ignore[no-untyped-call]


class Both(Halved):
    """A function that brings both gradients to the CPU."""

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        second = gradient.cpu()
        first = gradient.cpu()
        return first, second


@fails(born="first = gradient.cpu()")
def test_of_several_gradients_on_the_wrong_device_the_one_at_the_index_that_torch_names_is_meant() -> None:
    x = torch.ones(3, device="cuda:0", requires_grad=True)
    scale = torch.ones(3, device="cuda:0", requires_grad=True)
    Both.apply(x, scale).sum().backward()  # type: ignore[no-untyped-call]


class WithEmptyScale(nn.Module):
    """A module of which one buffer has no data."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.register_buffer("scale", torch.empty(3, device="meta"))


def _cuda() -> None:
    model = WithEmptyScale()
    model.cuda()


def _of_a_tensor() -> None:
    wanted = torch.device("cuda:0")
    scale = torch.empty(3, device="meta")
    scale.to(device=wanted)


def _above_the_name_of_its_device() -> None:
    scale = torch.empty(3, device="meta")
    wanted = torch.device("cuda:0")
    scale.to(device=wanted)


@pytest.mark.parametrize(
    ("program", "name", "helps"),
    [
        (_cuda, "model.scale", "to_empty"),
        (_of_a_tensor, "scale", "create it with `device=wanted`"),
        (_above_the_name_of_its_device, "scale", "to_empty"),
    ],
)
def test_a_tensor_without_data_that_is_moved_is_named(program: Callable[[], object], name: str, helps: str) -> None:
    says = Text(begins=f"`{name}` is on meta; this line copies it to cuda:0.")
    born = Text('torch.empty(3, device="meta")')
    fails(*BOTH, name=name, devices=("cuda:0", "meta"), message=says, born=born, help=Text(helps))(program)()


@fails(devices=("meta",), message=Text(begins="`scale` is on meta; this line copies it."))
def test_where_the_device_of_a_copy_is_not_known_the_tensor_without_data_is_named_all_the_same() -> None:
    def wanted() -> torch.device:
        return torch.device("cpu")

    scale = torch.empty(3, device="meta")
    scale.to(wanted())


def test_an_error_of_torchs_about_devices_is_reported_in_its_words_where_nothing_is_known_of_it() -> None:
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            context.table = torch.zeros(3)
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> Any:
            return context.table

    def program() -> None:
        x = torch.ones(3, device="cuda:0", requires_grad=True)
        Kept.apply(x).sum().backward()  # type: ignore[no-untyped-call]

    report = report_of(program)
    (found,) = [each for each in report.findings if each.severity == "error"]
    assert found.cause == "unknown"
    assert "invalid gradient at index 0" in found.message
    assert "No device problems" not in report.text


@fails(message=Text('rows["layer.weight"]', "rows['layer\"][\"bias']"))
def test_a_key_with_dots_or_brackets_is_not_cut_apart() -> None:
    rows = {"layer.weight": torch.rand(2, 4), 'layer"]["bias': torch.rand(2)}
    nn.functional.linear(torch.rand(2, 4, device="cuda:0"), rows["layer.weight"], rows['layer"]["bias'])


nothing = None


def test_a_module_that_has_died_is_not_named_after_a_variable_that_is_none() -> None:
    def program() -> None:
        def once(rows: torch.Tensor) -> None:
            short_lived = nn.Linear(4, 2).to("cuda:0")
            short_lived(rows)

        rows = torch.rand(2, 4, device="cuda:0")
        once(rows)
        rows + torch.rand(2, 4)

    assert [module.path for module in report_of(program).trace.modules] == ["short_lived"]


def test_a_module_that_torch_calls_for_the_user_has_the_name_it_was_passed_by() -> None:
    def program() -> None:
        block = nn.Linear(4, 4)
        checkpoint(block, torch.rand(2, 4, device="cuda:0", requires_grad=True), use_reentrant=False)

    assert [module.path for module in report_of(program).trace.modules] == ["block"]


def test_the_state_that_an_optimizer_loaded_is_followed_to_what_read_it() -> None:
    def program() -> None:
        device = "cuda:0"
        model = nn.Linear(4, 2).to(device)
        saved = torch.optim.SGD(model.parameters(), lr=torch.tensor([0.1])).state_dict()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.load_state_dict(saved)
        model.weight.detach().add_(optimizer.param_groups[0]["lr"].expand(2, 4))

    found = error_of(program)
    assert culprit_of(found).chain[0].text.startswith("saved = ")
    assert "below `" not in found.help
    assert (found.edits[0].line, found.edits[0].before) == (culprit_of(found).chain[1].line, "")


def test_state_that_was_loaded_before_the_model_moved_is_moved_below_the_move() -> None:
    def program() -> None:
        device = "cuda:0"
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        model(torch.rand(2, 4)).sum().backward()
        optimizer.step()
        saved = optimizer.state_dict()
        resumed = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        resumed.load_state_dict(saved)
        model.to(device)
        optimizer.zero_grad()
        model(torch.rand(2, 4, device=device)).sum().backward()
        resumed.step()

    found = error_of(program)
    moved = culprit_of(found).moved
    assert moved is not None
    assert moved.text == "model.to(device)"
    assert found.edits[0].line == moved.line
    assert "for state in resumed.state.values():" in found.edits[0].after


@fails(edits=["rows = rows.to(device)", "wanted = wanted.to(device)"])
def test_copies_that_nobody_kept_in_a_loop_are_kept_both() -> None:
    device = "cuda:0"
    model = nn.Linear(4, 2).to(device)
    for rows, wanted in [(torch.rand(2, 4), torch.rand(2, 2))]:
        rows.to(device)
        wanted.to(device)
        (model(rows) - wanted).sum()


def test_a_gradient_that_went_back_to_its_tensor_was_put_there_by_nobody() -> None:
    def program() -> None:
        weights = torch.rand(4, requires_grad=True)
        moved = weights.to("cuda:0")
        moved.sum().backward()
        assert weights.grad is not None
        torch.rand(4, device="cuda:0") - weights.grad

    found = error_of(program)
    assert found.cause == "never-moved"
    assert culprit_of(found).name == "weights.grad"
    assert not any("weights.to(" in edit.before for edit in found.edits)


def test_an_edit_that_changes_nothing_is_none() -> None:
    source = parsed("y = x.to(device)\n")
    code = Code(source, Site("a.py", 1))
    statement = source.tree.body[0]
    assert code.replaced(statement, "y = x.to( device )") is None
    assert code.below(statement) is None
    assert code.replaced(statement, "y = x.to(other)") is not None


@fails(
    *BOTH,
    cause="not-registered",
    moved='model.to("cuda:0")',
    edits=['self.register_buffer("table", torch.arange(3.0), persistent=False)'],
)
def test_a_trainer_that_clears_up_after_the_error_changes_nothing_of_its_cause() -> None:
    model = Scaled()
    model.to("cuda:0")
    try:
        model(torch.ones(2, 3, device="cuda:0"))
    finally:
        model.cpu()


def test_a_part_of_a_call_over_several_lines_is_replaced_in_its_text() -> None:
    source = parsed("x = torch.ones(\n    3, device=d,\n    dtype=t)", "a.py")
    call = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    code = Code(source, Site("a.py", 1))
    whole = code.text_with(call, (call.keywords[0].value, "y.device"))
    assert whole == "torch.ones(\n    3, device=y.device,\n    dtype=t)"


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.first(x)
        return y


@pytest.mark.parametrize("is_trained_first", [True, False])
def test_training_that_ran_the_line_before_did_not_miss_it(is_trained_first: bool) -> None:
    def program() -> None:
        model, other, rows = Shared().to("cuda:0"), nn.Linear(4, 2).cuda(), torch.rand(2, 4)
        (model if is_trained_first else other)(rows.to("cuda:0")).sum().backward()
        other(rows.to("cuda:0"))
        with torch.no_grad():
            model.eval()(rows)

    assert ("Training did not reach this line" in error_of(program).message) is not is_trained_first


def test_the_one_literal_of_another_accelerator_is_changed_where_a_variable_names_the_device() -> None:
    def moved() -> None:
        device = torch.device("cuda:0")
        judge = nn.Linear(4, 1).to(device)
        maker = nn.Linear(2, 4).to("cuda:1")
        judge(maker(torch.randn(8, 2).to(device))).sum().backward()

    def made() -> None:
        dev = "cuda:0"
        first = nn.Linear(4, 4).to(dev)
        second = nn.Linear(4, 4, device="cuda:1")
        second(first(torch.randn(2, 4, device=dev))).sum().backward()

    found = [error_of(moved), error_of(made)]
    assert [each.culprit.name for each in found if each.culprit is not None] == ["maker.weight", "second.weight"]
    assert [[edit.after.strip() for edit in each.edits] for each in found] == [
        ["maker = nn.Linear(2, 4).to(device)"],
        ["second = nn.Linear(4, 4, device=dev)"],
    ]


@fails(devices=("cuda:1", "cuda:0"))
def test_a_second_accelerator_that_the_program_names_again_is_meant() -> None:
    device = torch.device("cuda:0")
    first = nn.Linear(4, 4).to(device)
    second = nn.Linear(4, 4).to("cuda:1")
    goal = torch.zeros(2, 4).to("cuda:1")
    (second(first(torch.randn(2, 4, device=device))) - goal).sum().backward()


class Counts:
    def __init__(self) -> None:
        self.of_all = torch.zeros(3)


def test_a_moved_copy_is_not_counted_into_in_vain() -> None:
    def counted() -> None:
        counts, labels = torch.zeros(3), torch.tensor([0, 2]).cuda()
        counts[labels] += 1

    def of_an_object() -> None:
        kept = Counts()
        labels = torch.tensor([0, 2]).cuda()
        kept.of_all[labels] -= torch.ones(2, device="cuda")

    edits = [edit.after for program in (counted, of_an_object) for edit in error_of(program).edits]
    assert [edit for edit in edits if re.search(r"\.to\([^)]*\)\[labels\]", edit)] == []


def test_an_item_that_is_counted_up_is_named_without_a_recording_too() -> None:
    kept, confusion = Counts(), torch.zeros(3, 3)
    with devtrace.simulate("cuda:1"):
        labels = torch.tensor([0, 2]).cuda()
        reports = []
        for counts, where in ((kept.of_all, labels), (confusion, (labels, labels))):
            with pytest.raises(RuntimeError) as caught:
                count(counts, where)
            reports.append(devtrace.explain(caught.value))
    names = [each.findings[0].culprit.name for each in reports if each.findings[0].culprit is not None]
    assert [name.startswith(("kept", "confusion", "counts")) for name in names] == [True, True]


def count(counts: torch.Tensor, where: Any) -> None:
    counts[where] += 1


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.grid: Any = None
        self.ramp: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.grid is None:
            self.grid = torch.ones(4)
            self.ramp = torch.arange(4.0)
        return torch.add(self.layer(x) * (self.grid * 2), self.ramp)


@fails(
    cause="stale-copy",
    edits=[
        'self.register_buffer("grid", None, persistent=False)',
        'self.register_buffer("ramp", None, persistent=False)',
    ],
)
def test_a_cache_that_was_filled_before_the_move_is_a_buffer_from_the_start() -> None:
    model = Cached()
    for _ in range(40):
        model(torch.ones(1, 4))
    model.to("cuda:0")(torch.ones(1, 4, device="cuda:0"))


@fails(name="torch.zeros(2)")
def test_an_item_of_a_list_that_was_handed_over_is_called_by_what_made_it() -> None:
    def joined(parts: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(parts)

    x = torch.ones(2, device="cuda:0")
    joined([x, torch.zeros(2)])


def test_what_was_made_above_a_loop_is_no_neighbour_of_the_batches_that_the_loop_moves() -> None:
    def counted() -> None:
        device = torch.device("cuda")
        confusion = torch.zeros(3, 3, dtype=torch.long)
        for _ in range(2):
            labels, found = torch.tensor([0, 2]).to(device), torch.tensor([1, 2]).to(device)
            confusion[labels, found] += 1

    def weighed() -> None:
        device = "cuda:0"
        rows = torch.rand(2, 3, 4)
        weights = torch.full((4,), 0.5)
        total = torch.zeros((), device=device)
        for row in rows:
            batch = row.to(device)
            total += (batch * weights).sum()

    found = [error_of(counted), error_of(weighed)]
    assert [[edit.after.strip() for edit in each.edits] for each in found] == [
        ["confusion = torch.zeros(3, 3, dtype=torch.long).to(device)"],
        ["weights = torch.full((4,), 0.5).to(device)"],
    ]
    assert not any("left this tensor behind" in each.message for each in found)
