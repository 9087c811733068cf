"""Advice on a value that each step reads: what can be done depends on what the program does with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from costs import GPU, train, warnings, warns
from failing import Text

Each = Callable[[torch.Tensor], torch.Tensor]

# A number that is drawn from nothing needs no device.


def _coin_of_a_dropped_layer(x: torch.Tensor) -> torch.Tensor:
    coin = torch.empty(1, device=GPU).uniform_(0, 1)
    if coin > 0.3:
        x = x + 1
    return x.square().mean()


def _gain_of_an_augmentation(x: torch.Tensor) -> torch.Tensor:
    factor = (torch.randn(1).to(GPU) * 0.1 + 1).item()
    return (factor * x).square().mean()


@pytest.mark.parametrize("each", [_coin_of_a_dropped_layer, _gain_of_an_augmentation])
def test_a_number_that_is_drawn_from_nothing_is_drawn_on_the_cpu(each: Each) -> None:
    (found,) = [found for found in warnings(lambda: train(each)) if found.rule == "host-sync"]
    assert found.count == 12
    assert "to read a number that was drawn at random" in found.message
    assert found.help == "draw it on the CPU, without a device or in Python: that waits for nothing"


def test_a_count_of_data_that_a_program_draws_itself_is_no_draw() -> None:
    def count() -> int:
        net, seen = nn.Linear(8, 8).to(GPU), 0
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(12):
            x = torch.randn(16, 8).to(GPU)
            net(x).square().mean().backward()
            optimizer.step()
            seen += int((x > 1).sum())
        return seen

    (found,) = warnings(count)
    assert "to add to a Python number" in found.message


# A size is needed where it is read; a tensor cannot stand for it.


def _rows_for_the_best(x: torch.Tensor) -> torch.Tensor:
    room = torch.zeros(int((x > 0.1).sum()), 8, device=GPU)
    return x.square().mean() + room.sum()


def _cut_to_the_longest(x: torch.Tensor) -> torch.Tensor:
    end = x.detach().abs().sum(0).argmax().item() + 1
    return x[:, :end].square().mean()


@pytest.mark.parametrize("each", [_rows_for_the_best, _cut_to_the_longest])
def test_a_size_that_each_step_reads_is_to_be_known_without_the_device(each: Each) -> None:
    found = warnings(lambda: train(each))[0]
    assert (found.rule, found.count) == ("host-sync", 12)
    assert "to know a size" in found.message
    assert found.help == "know it without the device: from the data before it is moved, or as a fixed upper bound"


# A number that scales what a device computes, and one that sets a learning rate.


def _average_by_its_loss(average: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    loss = x.square().mean()
    average.sub_(x.detach().mean(0), alpha=float(loss.detach().tanh()))
    return loss


def _quotient_by_its_loss(average: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    loss = x.square().mean()
    share = 0.5 * loss.item()
    torch.addcdiv(average, x.detach().sum(0), torch.ones(8, device=GPU), value=share, out=average)
    return loss


@pytest.mark.parametrize(("each", "argument"), [(_average_by_its_loss, "alpha"), (_quotient_by_its_loss, "value")])
def test_an_argument_that_takes_only_numbers_is_left_out_for_a_product(
    each: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], argument: str
) -> None:
    average = torch.zeros(8)

    def program() -> None:
        on_device = average.to(GPU)
        train(lambda x: each(on_device, x))

    (found,) = warnings(program)
    assert found.help == f"multiply by the tensor itself (`.detach()`): `{argument}=` takes only a number"


def _rate_of_groups(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    rate = 0.1 / (1 + loss.item())
    for group in optimizer.param_groups:
        group["lr"] = rate


def _rate_on_a_plateau(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    PLATEAUS.setdefault(id(optimizer), torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)).step(float(loss))


def _rate_by_a_function(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    _set_rate(optimizer, 0.1 / (1 + loss.item()))


def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    optimizer.param_groups[0]["lr"] = rate


PLATEAUS: dict[int, torch.optim.lr_scheduler.ReduceLROnPlateau] = {}


@pytest.mark.parametrize("set_rate", [_rate_of_groups, _rate_on_a_plateau, _rate_by_a_function])
@warns(message=Text("to set a learning rate"), help="set it every N steps, or once an epoch")
def test_a_learning_rate_is_to_be_set_less_often(
    set_rate: Callable[[torch.optim.Optimizer, torch.Tensor], None],
) -> None:
    net = nn.Linear(8, 8).to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.rand(12, 16, 8, device=GPU):
        loss = net(x).square().mean()
        loss.backward()
        set_rate(optimizer, loss.detach())
        optimizer.step()


# Elements that are read one by one.


def _both_of_a_pair() -> int:
    guesses, truths, hits = torch.arange(60, device=GPU) % 3, torch.arange(60, device=GPU) % 2, 0
    for guess, truth in zip(guesses, truths, strict=True):
        if guess == truth:
            hits += 1
    return hits


def _difference_of_a_pair() -> float:
    left, right, worst = torch.rand(60, device=GPU), torch.rand(60, device=GPU), 0.0
    for at in range(60):
        worst = max(worst, (left[at] - right[at]).item())
    return worst


@pytest.mark.parametrize(
    ("program", "names"), [(_both_of_a_pair, ("guesses", "truths")), (_difference_of_a_pair, ("left", "right"))]
)
def test_all_tensors_whose_elements_are_read_are_named(program: Callable[[], object], names: tuple[str, str]) -> None:
    (found,) = warnings(program)
    first, second = names
    assert found.count == 60
    assert (
        found.help
        == f"read all of `{first}` and `{second}` at once, above the loop: `{first}.tolist()` and `{second}.tolist()`"
    )


def _rows_of_a_table(x: torch.Tensor) -> torch.Tensor:
    each = x.square().mean(1)
    for score in each.tolist():
        TABLE.append(score)
    return each.mean()


def _rows_by_index(x: torch.Tensor) -> torch.Tensor:
    each = x.abs().sum(1)
    scores = each.detach().cpu()
    TABLE.extend(float(scores[row]) for row in range(16))
    return each.mean()


TABLE: list[float] = []


@pytest.mark.parametrize("each", [_rows_of_a_table, _rows_by_index])
def test_who_reads_all_elements_at_once_as_advised_hears_nothing_more(each: Each) -> None:
    assert warnings(lambda: train(each)) == []


def _methods_of_elements() -> torch.Tensor:
    labels, seen = torch.arange(60, device=GPU) % 3, torch.zeros(3)
    for label in labels:
        seen[label.long()] += 1
    return seen


def _two_indexes() -> int:
    far, pairs = torch.rand(8, 8, device=GPU), 0
    for a in range(8):
        for b in range(8):
            if far[a, b] > 0.5:
                pairs += 1
    return pairs


@pytest.mark.parametrize(("program", "name"), [(_methods_of_elements, "labels"), (_two_indexes, "far")])
def test_elements_that_must_stay_tensors_are_read_from_a_copy_on_the_cpu(
    program: Callable[[], object], name: str
) -> None:
    (found,) = warnings(program)
    assert found.help == f"read all of `{name}` at once, above the loop: `{name}.cpu()`"


def _lengths_of_a_batch() -> None:
    lengths = torch.tensor([3, 5, 2], device=GPU)
    train(lambda x: torch.stack([x[at, : int(lengths[at])].mean() for at in range(3)]).square().mean(), 14)


def _words_of_what_is_sure(x: torch.Tensor) -> torch.Tensor:
    sure = x.detach().amax(1)[:3] > 0.5
    WORDS.extend("yes" if sure[row] else "no" for row in range(3))
    return x.square().mean()


WORDS: list[str] = []


def _backwards_until_an_end(x: torch.Tensor) -> torch.Tensor:
    total, ended = torch.zeros((), device=GPU), x.detach()[:, 0] > 2
    for at in reversed(range(3)):
        total = x[at].mean() if ended[at] and at > -1 else total + x[at].mean()
    return total.square()


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (_lengths_of_a_batch, "lengths"),
        (lambda: train(_words_of_what_is_sure, 14), "sure"),
        (lambda: train(_backwards_until_an_end, 14), "ended"),
    ],
)
def test_a_few_elements_that_each_step_reads_of_one_tensor_are_read_at_once(
    program: Callable[[], object], name: str
) -> None:
    (found,) = warnings(program)
    assert found.count == 42
    assert found.help == f"read all of `{name}` at once, above the loop: `{name}.tolist()`"


def _an_index_beside_its_tensor() -> list[int]:
    classes, margins = torch.arange(60, device=GPU) % 5, torch.rand(60, device=GPU)
    return [at for at, _ in enumerate(classes) if margins[at] < 0.25]


def _an_index_of_pairs() -> dict[int, float]:
    found, margins = {}, torch.rand(60, device=GPU)
    for row, (margin, limit) in enumerate(zip(margins, torch.rand(60), strict=True)):
        if row % 2 or margin < 0.5:
            found[row] = float(margin) + float(limit)
    return found


@pytest.mark.parametrize("program", [_an_index_beside_its_tensor, _an_index_of_pairs])
def test_an_index_is_no_element_of_what_a_loop_goes_through(program: Callable[[], object]) -> None:
    assert [each.help for each in warnings(program)] == [
        "read all of `margins` at once, above the loop: `margins.tolist()`"
    ]


# A count that only numbers change, and a loop within a step that ends by what it reads.


def _solved_within_a_step(x: torch.Tensor) -> torch.Tensor:
    scale, change = torch.ones((), device=GPU), torch.ones((), device=GPU)
    while change > 0.3:
        new = (scale + x.detach().abs().mean() / scale) / 2
        scale, change = new, (new - scale).abs()
    return (x / scale).square().mean()


def test_a_loop_within_a_step_may_end_by_what_it_reads() -> None:
    assert warnings(lambda: train(_solved_within_a_step)) == []


# What a mask picks is counted: what can be done depends on what takes it.


def _mean_where_it_is_warm(x: torch.Tensor) -> torch.Tensor:
    warm = x[x.detach() > 0.2]
    return warm.pow(2).mean()


def _loss_of_what_was_observed(x: torch.Tensor) -> torch.Tensor:
    observed = x.detach() < 0.3
    return nn.functional.binary_cross_entropy_with_logits(x[observed], torch.ones_like(x)[observed])


def _tokens_that_are_no_padding(x: torch.Tensor) -> torch.Tensor:
    tokens = x.detach().argmax(1)
    logits = x[tokens.ne(0)]
    return nn.functional.nll_loss(logits.log_softmax(1), tokens[tokens.ne(0)])


def _values_of_states_that_go_on(x: torch.Tensor) -> torch.Tensor:
    goes_on, after = x.detach()[:, 0] > 0, torch.zeros(16, device=GPU)
    after[goes_on] = x[goes_on].amax(1)
    return (after - 1).square().mean()


@pytest.mark.parametrize(
    ("each", "help"),
    [
        (_mean_where_it_is_warm, "`torch.where(x.detach() > 0.2, ..., 0).sum()`, divided by the sum of the mask"),
        (_loss_of_what_was_observed, "`torch.where(observed, ..., 0).sum()`, divided by the sum of the mask"),
        (_tokens_that_are_no_padding, "the label that it ignores: `torch.where(tokens.ne(0), ..., -100)`"),
        (_values_of_states_that_go_on, "keep the shape: `torch.where(goes_on, x, 0)`"),
    ],
)
def test_what_a_mask_picks_is_not_counted_by_what_takes_it(each: Each, help: str) -> None:
    found = next(finding for finding in warnings(lambda: train(each)) if finding.rule == "host-sync")
    assert "to count the elements that a mask picks" in found.message
    assert help in found.help


def test_a_check_that_is_passed_on_is_made_less_often() -> None:
    def require(fits: bool) -> None:
        if not fits:
            raise ValueError

    def program(x: torch.Tensor) -> torch.Tensor:
        require(bool((x < 1e6).all()))
        return x.square().mean()

    (found,) = warnings(lambda: train(program))
    assert found.help.startswith("check every N steps")
