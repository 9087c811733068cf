"""What a run leaves behind, by name, and what of it another run has not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from devtrace.fixing.values import differing, values_of


def test_values_of_an_optimizer_have_its_state_by_the_order_of_its_parameters() -> None:
    net = torch.nn.Linear(2, 1)
    rule = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    rule.step()
    found = json.loads(json.dumps(values_of({"rule": rule, "device": "cuda:0"})))
    assert "rule.state[1]['exp_avg']" in found
    assert differing(found, {**found, "device": "cpu"}) == []
    assert differing(found, {**found, "rule.state[2]['step']": None}) == ["rule.state[2]['step']"]


@pytest.mark.parametrize("other", [torch.float64, torch.float16, torch.int64])
def test_a_tensor_of_the_same_numbers_and_another_dtype_differs(other: torch.dtype) -> None:
    before, after = (values_of({"x": torch.ones(3, dtype=dtype)}) for dtype in (torch.float32, other))
    assert differing(before, before) == []
    assert differing(before, after) == ["x"]


def test_numbers_that_numpy_draws_are_the_same_in_every_run() -> None:
    program = "from devtrace.fixing import values; values.seed(); import numpy; print(numpy.random.rand())"
    drawn = {subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE).stdout for _ in range(2)}
    assert len(drawn) == 1
