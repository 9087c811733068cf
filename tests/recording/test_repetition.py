"""Folding keys: what stands for what."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devtrace.recording.folding.repetition import Repetition, fold, longest_run

Array = npt.NDArray[np.int64]


def kept(into: Array) -> Array:
    return np.flatnonzero(into == np.arange(len(into)))


def test_the_middle_of_a_loop_goes_and_both_ends_stay() -> None:
    keys = np.array([9, 8, *[1, 2, 3] * 100, 7])
    into = fold(keys, 30, 60)
    left = keys[kept(into)].tolist()
    assert left[:5] == [9, 8, 1, 2, 3]
    assert left[-4:] == [1, 2, 3, 7]
    assert len(left) == 2 + 3 * 9 + 1


def test_the_first_and_the_last_repetitions_stay() -> None:
    into = fold(np.array([1, 2, 3] * 100), 9, 9)
    assert kept(into).tolist() == [0, 1, 2, 294, 295, 296, 297, 298, 299]


def test_a_loop_in_a_loop_is_folded_as_the_outer_loop_if_that_is_needed() -> None:
    step = [1, *[2, 3] * 6, 4]
    left = np.array(step * 200)[kept(fold(np.array(step * 200), 100, 100))].tolist()
    assert left == step * 7


def test_what_does_not_repeat_in_order_is_folded_one_by_one() -> None:
    keys = np.random.default_rng(0).integers(0, 40, 5000)
    into = fold(keys, 1000, 2000)
    assert len(kept(into)) <= 1000
    assert (keys[into] == keys).all()


def test_what_never_repeats_is_kept() -> None:
    assert len(kept(fold(np.arange(1000), 10, 10))) == 1000


def test_a_run_that_ended_before_is_found() -> None:
    run = longest_run(np.array([1, 2] * 50 + list(range(10, 20))), 50)
    assert run is not None
    assert run.period == 2


def test_a_run_counts_whole_repetitions() -> None:
    assert Repetition(3, 14, 5).repetitions == 2


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_ops_are_no_fault(count: int) -> None:
    assert len(fold(np.zeros(count, dtype=np.int64), 1, 1)) == count


@settings(deadline=None, max_examples=150)
@given(
    loops=st.lists(
        st.tuples(st.lists(st.integers(0, 6), min_size=1, max_size=9), st.integers(1, 40)), min_size=1, max_size=6
    ),
    most=st.integers(1, 60),
)
def test_ops_represent_only_ops_of_their_key_and_are_all_counted(loops: list[tuple[list[int], int]], most: int) -> None:
    keys = np.array([key for body, times in loops for key in body * times])
    into = fold(keys, most, 2 * most)
    assert (keys[into] == keys).all()
    assert (into[into] == into).all()
    left = kept(into)
    assert left[0] == 0
    assert len(left) <= max(2 * most, len(set(keys.tolist())) + most)
