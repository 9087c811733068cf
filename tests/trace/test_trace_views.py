"""Whose memory a tensor uses: that of what it is a view of, and after a change in place its own as before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import devtrace
from devtrace.trace.views import storage_owners

ROWS_OF_X = {
    "view": lambda x: x.t().flatten(0, 0)[0].sum(),
    "transposed in place": lambda x: x.t_().sum(),
    "unsqueezed in place": lambda x: x.unsqueeze_(0).sum(),
    "resized in place": lambda x: x.resize_as_(torch.ones(3)).sum(),
    "copied": lambda x: x.clone().sum(),
    "cast": lambda x: x.double().sum(),
    "computed": lambda x: (x + 1).sum(),
    "moved": lambda x: x.to("cuda:0").sum(),
}
OWN_MEMORY = {"copied", "cast", "computed", "moved"}


@pytest.mark.parametrize("use", ROWS_OF_X)
def test_a_view_uses_the_memory_of_its_base_and_a_copy_its_own(use: str) -> None:
    program: Callable[[torch.Tensor], torch.Tensor] = ROWS_OF_X[use]
    with devtrace.record(simulate="cuda:1") as recording:
        x = torch.rand(2, 3)
        program(x)
    trace = recording.trace
    made = next(op for op in trace.ops if op.name == "aten.rand").outputs[0].id
    [summed] = [op.inputs[0].id for op in trace.ops if op.name == "aten.sum"]
    owners = storage_owners(trace)
    assert owners[made] == made
    assert owners[summed] == (summed if use in OWN_MEMORY else made)
    assert summed != made


def test_a_trace_without_ops_has_no_owners() -> None:
    with devtrace.record() as recording:
        pass
    assert storage_owners(recording.trace).tolist() == []
