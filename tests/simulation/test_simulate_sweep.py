"""Every operator that torch has samples for, on a simulated device: the CPU's values, and the rule table's outcomes.

`make test` asks each operator a few of its samples, `make sweep` all of them (minutes).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple

import cuda_truth
import pytest
import torch
from torch.utils import _pytree as pytree

import devtrace
import needs
from devtrace.runtime.patches import Call
from devtrace.simulation import checks, rules
from devtrace.simulation.storage_tags import FLOATING
from modes import Ops

needs.imported("expecttest")
pytestmark = pytest.mark.slow

WHOLE = os.environ.get("DEVTRACE_SWEEP") == "whole"

# Not counted. Some samples name no device, and the contents of uninitialised memory are nobody's.
NO_DEVICE = {"arange", "linspace", "linspace.tensor_overload", "logspace", "logspace.tensor_overload"}
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# Under any dispatch mode torch takes a batch of one out of three dimensions and folds, where it else expands it (see
# isTensorSubclassLike in its LinearAlgebra.cpp): an ulp, on some machines.
FOLDED = {"matmul", "__rmatmul__"}
# CUDA refuses indices on the device, where every tensor of a sample goes, and has no kernel for histograms.
REFUSED = {"tensor_split", "histogram", "histogramdd"}
# LAPACK's answer depends on the alignment of its memory: the CPU does not repeat it either.
NOT_REPEATABLE = {"linalg.lstsq", "linalg.lstsq.grad_oriented"}


class Question(NamedTuple):
    name: str
    op: Any
    samples: list[cuda_truth.Sample]


@cache
def questions() -> list[Question]:
    """Return each operator with its samples, or with three of its first nine."""
    return [
        Question(
            cuda_truth.full_name(op),
            op,
            list(cuda_truth.samples(op) if WHOLE else islice(cuda_truth.samples(op), 0, 9, 4)),
        )
        for op in cuda_truth.operators()
    ]


def chunks(asked: list[Question]) -> Iterator[list[Question]]:
    """Split: to end a simulation takes longer than most operators, to keep all results takes much memory."""
    for start in range(0, len(asked), 100):
        yield asked[start : start + 100]


def outcome(op: Any, sample: cuda_truth.Sample) -> list[Any] | Exception:
    torch.manual_seed(7)
    try:
        return pytree.tree_leaves(op(*sample.args, **sample.kwargs))
    except Exception as error:  # noqa: BLE001 (the CPU's error is an outcome too)
        return error


def same(plain: Any, simulated: Any, exact: bool) -> bool:
    """On the device, and bit for bit unless the CPU does not repeat itself either."""
    if not isinstance(plain, torch.Tensor):
        return bool(plain == simulated or plain != plain)
    if simulated.device != torch.device(cuda_truth.DEVICE) or simulated.dtype is not plain.dtype:
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


def agrees(plain: list[Any] | Exception, simulated: list[Any] | Exception, exact: bool) -> bool:
    if isinstance(plain, Exception) or isinstance(simulated, Exception):
        return type(plain) is type(simulated) and str(plain) == str(simulated)
    return len(plain) == len(simulated) and all(same(*pair, exact) for pair in zip(plain, simulated, strict=True))


NAMED = {
    id(function): (module, name)
    for module in (torch.nn.functional, torch.fft, torch.special, torch.linalg, torch)
    for name, function in vars(module).items()
    if callable(function)
}


def as_called(op: Any) -> Any:
    """Return what a program calls that writes `torch.linalg.norm`: a simulation replaces a few functions of torch."""
    named = NAMED.get(id(getattr(op, "op", None)))
    return getattr(*named) if named is not None else op


def wrong_ones(asked: Sequence[Question]) -> Iterator[str]:
    """Yield the operators that do not give the CPU's values on the device."""
    expected = [
        [outcome(as_called(op), cuda_truth.moved(sample, "cpu")) for sample in samples] for _, op, samples in asked
    ]
    with devtrace.simulate("cuda:2"):
        for (name, op, samples), plain in zip(asked, expected, strict=True):
            function = as_called(op)
            simulated = (outcome(function, cuda_truth.moved(sample, cuda_truth.DEVICE)) for sample in samples)
            if not all(agrees(*pair, name not in NOT_REPEATABLE) for pair in zip(plain, simulated, strict=True)):
                yield name


DTYPES = {torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64}
# Kernels that exist for CUDA alone, and a sum that the CPU has for no complex dtype.
ONLY_ON_CUDA = {
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
    "nansum",
    "_refs.nansum",
    "nanmean",
    "masked.nansum",
}


def wrong_in(op: Any, dtype: torch.dtype) -> str:
    """Compare an operator's results with the CPU's, where the CPU has any."""
    for sample in islice(cuda_truth.samples(op, dtype), 2):
        plain = outcome(op.op, cuda_truth.moved(sample, "cpu"))
        there = outcome(as_called(op), cuda_truth.moved(sample, cuda_truth.DEVICE))
        if isinstance(there, Exception):
            if isinstance(plain, Exception) and dtype in op.supported_dtypes("cpu"):
                continue
            return f"{there!r}"
        if isinstance(plain, Exception) or any(each.device.type == "cpu" for each in of_tensors(there)):
            continue  # the sample names a device
        if [each.dtype for each in of_tensors(plain)] != [each.dtype for each in of_tensors(there)]:
            return "another dtype"
    return ""


def of_tensors(leaves: list[Any]) -> list[torch.Tensor]:
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def wrong_dtypes(every: int, dtypes: Callable[[Any], set[torch.dtype]]) -> tuple[dict[str, str], int]:
    """Return which operators are wrong in some dtypes that CUDA has, of all or each so manieth, and how many pairs."""
    from torch.testing._internal.common_methods_invocations import op_db

    chosen = [op for op in list(op_db)[:: 1 if WHOLE else every] if op.name not in ONLY_ON_CUDA]
    asked = [(op, dtype) for op in chosen for dtype in sorted(set(op.supported_dtypes("cuda")) & dtypes(op), key=str)]
    with devtrace.simulate("cuda:1"), warnings.catch_warnings(action="ignore"):
        return {f"{op.name} {dtype}": words for op, dtype in asked if (words := wrong_in(op, dtype))}, len(asked)


def test_what_cuda_has_in_a_dtype_and_the_cpu_has_not_works_on_a_device() -> None:
    found, asked = wrong_dtypes(1, lambda op: set(op.supported_dtypes("cuda")) - set(op.supported_dtypes("cpu")))
    assert found == {}
    assert asked > 50


def test_every_operator_works_in_the_dtypes_that_cuda_has() -> None:
    assert wrong_dtypes(12, lambda op: DTYPES)[0] == {}


PARTS = 6


@cache
def counted() -> list[Question]:
    return [question for question in questions() if question.name not in NO_DEVICE | UNINITIALISED]


@pytest.mark.parametrize("part", range(PARTS))
def test_torchs_operators_give_the_values_of_the_cpu(part: int) -> None:
    with warnings.catch_warnings(action="ignore"):  # torch's, of what it will drop
        wrong = {name for chunk in chunks(counted()[part::PARTS]) for name in wrong_ones(chunk)}
    assert wrong <= FOLDED | REFUSED, wrong


def test_at_most_one_percent_of_them_need_not() -> None:
    assert len(counted()) > 600
    assert len(FOLDED | REFUSED) <= 0.01 * len(counted())


def judge(func: Any, args: Any, kwargs: Any) -> str:
    """Return the verdict of the rule table on a mix of devices, before the simulated device is asked."""
    found = rules.arguments(func, args, kwargs or {})
    devices = {arg.owner for arg in found}
    return verdict(func, found, args) if len(devices) > 1 and FLOATING not in devices else ""


LEGAL, NO_ROW = "legal", "no row"


def verdict(func: Any, found: list[rules.Arg], args: Any) -> str:
    rule = rules.rule_of_call(func, found, args)
    if rule.check == "inner" or func.namespace != "aten":  # what it is made of is judged, and not seen here
        return NO_ROW
    try:
        rules.CHECKS[rule.check](func, rule, found)
    except RuntimeError as error:
        return str(error)
    return LEGAL


def disagreement(op: Any, sample: cuda_truth.Sample, left: torch.Tensor, raised_above: list[Exception]) -> str:
    """Compare the outcome of a sample, of which one tensor was left on the CPU, with the rule table; empty if alike."""
    with Ops(judge) as ops:
        got = outcome(op, cuda_truth.moved(sample, cuda_truth.DEVICE, but=left))
    verdicts = [each for each in ops.seen if each]
    verdict_of_table = verdicts[-1] if verdicts else LEGAL
    if not isinstance(got, Exception):
        return "" if verdict_of_table in (LEGAL, NO_ROW) else f"legal, and the table expects: {verdict_of_table}"
    if verdict_of_table == NO_ROW or str(got) == verdict_of_table or got in raised_above:
        return ""
    alone = outcome(op, cuda_truth.moved(sample, cuda_truth.DEVICE))
    return (
        ""
        if isinstance(alone, Exception) and verdict_of_table == LEGAL
        else f"{got!r}, and the table expects: {verdict_of_table}"
    )


@pytest.fixture
def raised_above(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors of the checks that torch makes before it dispatches, and that have no row."""
    raised: list[Exception] = []

    def noting(check: Call, *args: Any, **kwargs: Any) -> None:
        try:
            check(*args, **kwargs)
        except Exception as error:
            raised.append(error)
            raise

    monkeypatch.setattr(checks, "ABOVE", [(*named, partial(noting, check)) for *named, check in checks.ABOVE])
    return raised


def test_what_becomes_of_a_tensor_left_on_the_cpu_fits_the_rule_table(raised_above: list[Exception]) -> None:
    found: dict[str, str] = {}
    asked = 0
    with devtrace.simulate("cuda:2"), warnings.catch_warnings(action="ignore"):
        for name, op, samples in questions():
            for sample, left in ((each, left) for each in samples for left in mixable(each)):
                asked += 1
                if wrong := disagreement(op, sample, left, raised_above):
                    found[name] = wrong
    assert found == {}
    assert asked > 1000


def mixable(sample: cuda_truth.Sample) -> list[torch.Tensor]:
    """Return the tensors that can be left behind.

    A sparse tensor cannot: torch has no copy of it that shares nothing. One tensor alone mixes nothing.
    """
    tensors = [tensor for _, tensor in cuda_truth.tensors(sample) if not tensor.is_sparse]
    return tensors if len(tensors) > 1 else []
