"""One change is one finding, however many lines it mends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from costs import GPU, findings, train, warnings


def _an_element_on_two_lines() -> float:
    weights, heavy, total = torch.rand(60, device=GPU), 0, 0.0
    for weight in weights:
        if weight > 0.5:
            heavy += 1
        total += weight.item() * heavy
    return total


def _an_element_on_four_lines() -> list[float]:
    found, marks = [], torch.rand(60, device=GPU)
    for mark in marks:
        if mark > 0.9:
            found.append(1.0)
        if mark < 0.1:
            found.append(0.0)
        low = float(mark)
        found.append(low + mark.item())
    return found


def _corners_on_two_lines() -> list[float]:
    corners, sizes = torch.rand(60, 2, device=GPU), []
    for corner in corners:
        left = corner[0].item()
        right = corner[1].item()
        sizes.append(right - left)
    return sizes


def _a_table_on_two_lines() -> None:
    table = torch.rand(8, 8)

    def twice(x: torch.Tensor) -> torch.Tensor:
        first = x @ table.to(GPU)
        return (first @ table.to(GPU)).square().mean()

    train(twice)


def _a_pair_that_some_branches_read() -> int:
    sure, rights = torch.rand(60, device=GPU), 0
    truths = torch.arange(60, device=GPU) % 2
    for score, truth in zip(sure, truths, strict=True):
        if score > 0.5:
            rights += int(truth)
    return rights


@pytest.mark.parametrize(
    "program",
    [_an_element_on_two_lines, _an_element_on_four_lines, _corners_on_two_lines, _a_table_on_two_lines],
)
def test_lines_with_one_change_in_common_have_one_warning_which_names_them_all(program: Callable[[], object]) -> None:
    (found,) = warnings(program)
    assert found.site is not None
    assert "The fix is the same for test_one_change.py line" in found.message
    assert f"line {found.site.line}" not in found.message


def test_elements_that_some_branches_read_are_read_above_the_loop_too() -> None:
    found = warnings(_a_pair_that_some_branches_read)
    assert [each.help for each in found] == [
        f"read all of `{name}` at once, above the loop: `{name}.tolist()`" for name in ("sure", "truths")
    ]


def test_lines_with_the_same_words_for_two_tensors_have_two() -> None:
    def program() -> float:
        masks = torch.rand(8, 8), torch.rand(8, 8)
        near, far = masks

        def both(x: torch.Tensor) -> torch.Tensor:
            first = x @ near.to(GPU)
            return (first @ far.to(GPU)).square().mean()

        train(both)
        return 0.0

    assert len(warnings(program)) == 2


def _three_values_in_a_line_of_text(x: torch.Tensor) -> torch.Tensor:
    out = x * torch.ones(300, 250).to(GPU).mean()
    TEXT.append(f"{x.mean().item():.2f} {x.std().item():.2f} {x.max().item():.2f}")
    return out.square().mean()


def _four_values_of_a_tuple(x: torch.Tensor) -> torch.Tensor:
    out = x * torch.full((400, 250), 0.5).to(GPU).sum()
    NUMBERS.append((x.min().item(), x.max().item(), x.mean().item(), x.norm().item()))
    return out.square().mean()


TEXT: list[str] = []
NUMBERS: list[tuple[float, ...]] = []


@pytest.mark.parametrize(("each", "values"), [(_three_values_in_a_line_of_text, 3), (_four_values_of_a_tuple, 4)])
def test_costs_that_one_change_ends_are_one_cost_in_the_order(
    each: Callable[[torch.Tensor], torch.Tensor], values: int
) -> None:
    found = findings(lambda: train(each))
    assert [one.rule for one in found if one.severity == "warning"] == ["host-sync", "host-to-device-copy"]
    reads = [one.severity for one in found if one.rule == "host-sync" and one.count == 12]
    assert reads == ["warning", *["note"] * (values - 1)]
