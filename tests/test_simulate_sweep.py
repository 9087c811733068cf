"""Every operator that torch has samples for: the CPU's values, on the simulated device, forward and backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import devtrace
from devtrace.simulate import truth

pytest.importorskip("expecttest")

# Not counted. Some samples name no device, and the contents of uninitialised memory are nobody's.
NO_DEVICE = {"arange", "linspace", "linspace.tensor_overload", "logspace", "logspace.tensor_overload"}
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# Under any dispatch mode torch computes the vectors too (see simulate/values.py), and the samples call the functions
# that were taken from torch.linalg before the simulation: values an ulp away.
ALSO_VECTORS = {"linalg.cond", "linalg.eigvalsh", "linalg.norm", "linalg.matrix_norm", "linalg.svdvals", "norm.nuc"}
# LAPACK's answer depends on the alignment of its memory: the CPU does not repeat it either.
NOT_REPEATABLE = {"linalg.lstsq", "linalg.lstsq.grad_oriented"}


def outcome(op: Any, sample: truth.Sample) -> list[Any] | Exception:
    torch.manual_seed(7)
    try:
        return pytree.tree_leaves(op(*sample.args, **sample.kwargs))
    except Exception as error:  # noqa: BLE001 (the CPU's error is an outcome too)
        return error


def same(plain: Any, simulated: Any, exact: bool) -> bool:
    """On the device, and bit for bit unless the CPU does not repeat itself either."""
    if not isinstance(plain, torch.Tensor):
        return bool(plain == simulated or plain != plain)
    if simulated.device != torch.device(truth.DEVICE) or simulated.dtype is not plain.dtype:
        return False
    back = simulated.cpu()
    if plain.is_nested:
        return bool(back.is_nested)
    if plain.layout is not torch.strided:
        plain, back = plain.to_dense(), back.to_dense()
    if plain.dtype is torch.complex32:
        plain, back = plain.to(torch.complex64), back.to(torch.complex64)
    near = 0.0 if exact else 1e-3
    return plain.shape == back.shape and bool(torch.allclose(plain, back, rtol=near, atol=near, equal_nan=True))


def right(op: Any) -> bool:
    questions = list(truth.samples(op))
    expected = [outcome(op, truth.moved(sample, "cpu")) for sample in questions]
    with devtrace.simulate("cuda:2"):
        return all(
            agrees(plain, outcome(op, truth.moved(sample, truth.DEVICE)), truth.full_name(op) not in NOT_REPEATABLE)
            for plain, sample in zip(expected, questions, strict=True)
        )


def agrees(plain: list[Any] | Exception, simulated: list[Any] | Exception, exact: bool) -> bool:
    if isinstance(plain, Exception) or isinstance(simulated, Exception):
        return type(plain) is type(simulated) and str(plain) == str(simulated)
    return len(plain) == len(simulated) and all(same(*pair, exact) for pair in zip(plain, simulated, strict=True))


@pytest.mark.slow
def test_at_least_99_percent_of_torchs_operators_give_the_values_of_the_cpu() -> None:
    counted = [op for op in truth.operators() if truth.full_name(op) not in NO_DEVICE | UNINITIALISED]
    wrong = {truth.full_name(op) for op in counted if not right(op)}
    assert len(counted) > 600
    assert wrong <= ALSO_VECTORS, wrong
    assert len(wrong) <= 0.01 * len(counted), wrong
