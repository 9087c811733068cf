"""Values that go to the host and back, memory that is used before a copy is done, numbers and draws of the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from costs import GPU, healthy, warnings, warns
from failing import Text

VOCABULARY = [f"word{at}" for at in range(12)]


def _model() -> nn.Module:
    return nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12)).to(GPU).eval()


# What a step reads and writes back.


@torch.no_grad()
def _joined_to_the_tokens() -> None:
    model, tokens, text = _model(), torch.zeros(1, 1, dtype=torch.long, device=GPU), ""
    for _ in range(20):
        best = int(model(tokens)[0, -1].argmax())
        text += VOCABULARY[best] + " "
        tokens = torch.cat([tokens, torch.full((1, 1), best, device=GPU)], 1)


@torch.no_grad()
def _kept_in_a_window() -> None:
    model, window, values = nn.Linear(4, 1).to(GPU), [0.1, 0.2, 0.3, 0.4], []
    for _ in range(20):
        inputs = torch.tensor(window[-4:]).to(GPU)
        value = model(inputs).item()
        values.append(value)
        window.append(value)


@pytest.mark.parametrize("program", [_joined_to_the_tokens, _kept_in_a_window])
def test_a_value_that_is_read_and_written_back_is_a_warning(program: Callable[[], None]) -> None:
    (found,) = [each for each in warnings(program) if each.rule == "host-sync"]
    assert found.count == 20
    assert "to write it back to the device" in found.message
    assert "use the tensor itself" in found.help


@torch.no_grad()
def _shown_at_once() -> None:
    model, token = _model(), torch.zeros(1, dtype=torch.long, device=GPU)
    for _ in range(20):
        picked = model(token).softmax(1).multinomial(1).item()
        print(VOCABULARY[picked], end="")
        token.fill_(picked)


@torch.no_grad()
def _done_in_an_environment() -> None:
    def step(action: int) -> list[float]:
        return [float(action), 1.0, 0.0, 0.5]

    policy, state = nn.Linear(4, 2).to(GPU), torch.rand(4, device=GPU)
    for _ in range(20):
        action = policy(state).argmax().item()
        observed = step(action)
        state = torch.tensor(observed, device=GPU)


NEEDED = [_shown_at_once, _done_in_an_environment]


@pytest.mark.parametrize("program", NEEDED)
def test_a_value_that_the_program_needs_on_the_cpu_before_the_next_step_is_none(program: Callable[[], None]) -> None:
    assert warnings(program) == []


@warns(
    rule="device-to-host-copy",
    count=20,
    message=Text("what the CPU computes from `ahead.cpu()` goes back to the device"),
)
@torch.no_grad()
def test_a_forecast_that_goes_through_numpy_in_each_step_is_a_warning() -> None:
    model, window = nn.Linear(4, 1).to(GPU), np.ones(4, dtype="float32")
    for _ in range(20):
        ahead = model(torch.from_numpy(window).to(GPU))
        window = np.append(window[1:], ahead.cpu().numpy())


def _packed(sound: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    packed = nn.utils.rnn.pack_padded_sequence(sound, lengths, enforce_sorted=False)
    return packed.data.sum()


@healthy
def test_lengths_that_a_batch_is_packed_by_may_come_from_the_device() -> None:
    net = nn.Linear(6, 4).to(GPU)
    for sound in torch.rand(14, 9, 5, 6, device=GPU):
        lengths = (sound.mean(2) > 0.2).sum(0).cpu()
        _packed(net(sound), lengths).backward()


def test_lengths_that_were_sent_only_to_be_packed_by_are_left_on_the_cpu() -> None:
    def program() -> None:
        net = nn.Linear(6, 4).to(GPU)
        for sound in torch.rand(14, 9, 5, 6):
            sound, lengths = sound.to(GPU), torch.tensor([9, 4, 6, 3, 9])
            lengths = lengths.to(GPU)
            _packed(net(sound), lengths.cpu()).backward()

    (found,) = [each for each in warnings(program) if each.rule == "device-to-host-copy"]
    assert "`lengths` was sent to the device" in found.message
    assert found.help == "leave it on the CPU"


@healthy
def test_what_a_mask_picks_to_be_copied_to_the_cpu_is_none() -> None:
    head, kept = nn.Linear(8, 5).to(GPU), list[object]()
    for image in torch.rand(12, 6, 8):
        out = head(image.to(GPU)).detach()
        sure = out[:, 4] > 0
        kept += zip(out[sure, :4].cpu().tolist(), out[sure][:, 4].cpu().tolist(), strict=True)


# Numbers and draws.


@warns(
    edits=[],
    help="use the number as it is, or make the tensor on the device: `torch.full((), ..., device=...)`",
)
def test_a_number_beside_other_copies_of_a_step_is_made_on_the_device() -> None:
    net = nn.Linear(4, 1).to(GPU)
    for step in range(20):
        state = torch.rand(4).to(GPU)
        reward = torch.tensor([float(step)], device=GPU)
        (net(state) - reward).sum()


@warns(rule="host-to-device-copy", count=12, help=Text(begins="draw it on the device"))
def test_negatives_that_each_step_draws_from_a_table_of_the_cpu_are_a_warning() -> None:
    words, frequencies, pairs = nn.Embedding(30, 4).to(GPU), torch.rand(30), torch.randint(0, 30, (12, 8))
    for pair in pairs:
        positive = words(pair.to(GPU))
        negative = words(torch.multinomial(frequencies, 8).to(GPU))
        (positive - negative).sum().backward()


# A package that reads element after element.

PACKAGE = """
def clusters(scores, least):
    found = []
    for row in scores:
        for at, value in enumerate(row):
            if value < least:
                break
            found.append(at)
    return found


def checked(scale):
    assert scale.shape, f"an empty scale: {scale}"
    ensure(scale.dim() == 1, f"one dimension is needed, not {scale}")
    return scale


def ensure(true, text):
    if not true:
        raise ValueError(text)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "elementwise.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder))
    return "elementwise"


@warns(
    rule="host-sync",
    count=80,
    message=Text("one element of `row` at a time"),
    help=Text("change it in a copy of your own, and report it there"),
)
def test_a_package_that_reads_elements_one_by_one_is_a_warning_without_training(package: str) -> None:
    __import__(package).clusters(torch.rand(10, 8, device=GPU) + 1, 0.5)


@warns(rule="host-sync", count=20, help=Text("make the text only where it is printed or raised"))
def test_text_that_a_package_makes_of_a_tensor_for_nobody_is_a_warning(package: str) -> None:
    module, net = __import__(package), nn.Linear(4, 4).to(GPU)
    for _ in range(20):
        net(module.checked(torch.rand(4, device=GPU)))


# What advice names.


def _counts_of_a_confusion() -> None:
    counts = torch.zeros(3, 3, dtype=torch.long, device=GPU)
    for _ in range(6):
        pred, target = torch.randn(12, 3, device=GPU).argmax(1), torch.randint(0, 3, (12,), device=GPU)
        for p, t in zip(pred.view(-1), target, strict=True):
            counts[t, p] += 1


def _largest_gradient() -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1)).to(GPU)
    for _ in range(20):
        net(torch.randn(4, 6, device=GPU)).square().mean().backward()
        largest = max(parameter.grad.abs().max() for parameter in net.parameters() if parameter.grad is not None)
        torch.where(largest > 1, largest, 1.0)
        net.zero_grad()


@pytest.mark.parametrize(
    ("program", "advice"),
    [
        (_counts_of_a_confusion, "`pred.view(-1).tolist()` and `target.tolist()`"),
        (_largest_gradient, "compare them on the device: `torch.stack([...]).max()`"),
    ],
)
def test_advice_has_the_names_of_what_is_read(program: Callable[[], None], advice: str) -> None:
    found, *_ = warnings(program)
    assert found.rule == "host-sync"
    assert advice in found.help


def _scheduled(table: torch.Tensor, steps: int = 14) -> None:
    x = torch.rand(16, 8, device=GPU)
    for step in range(steps):
        x = x * table[step].to(GPU)


def _decayed(rates: torch.Tensor) -> None:
    net = nn.Linear(8, 8).to(GPU)
    for at, x in enumerate(torch.rand(14, 16, 8, device=GPU)):
        rate = rates[at][0].cuda(non_blocking=True)
        (net(x) * rate).mean().backward()


@pytest.mark.parametrize(
    ("program", "edit"),
    [
        (lambda: _scheduled(torch.linspace(0, 1, 14)), "table = table.to(GPU)"),
        (lambda: _decayed(torch.rand(14, 2)), "rates = rates.cuda(non_blocking=True)"),
    ],
)
def test_a_table_whose_numbers_are_copied_one_by_one_is_moved_above_the_loop(
    program: Callable[[], None], edit: str
) -> None:
    (found,) = warnings(program)
    assert "is a single number, copied in each step" in found.message
    assert [each.after.strip() for each in found.edits] == [edit]


@warns(edits=[], message=Text("`table[step]` is a single number"))
def test_a_number_of_a_data_set_is_no_reason_to_move_all_of_it() -> None:
    _scheduled(torch.rand(1 << 20))


@warns(
    help="create it on the device: `torch.ones(8, 8, device=GPU)`",
    edits=["x = x * torch.ones(8, 8, device=GPU)  # nothing yet"],
)
def test_advice_on_a_constant_is_its_code_without_what_else_is_in_its_line() -> None:
    x = torch.rand(8, 8, device=GPU)
    for _ in range(14):
        x = x * torch.ones(8, 8).to(GPU)  # nothing yet
