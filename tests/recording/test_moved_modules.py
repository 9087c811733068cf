"""A module that is moved while it is recorded has tensors of one name on two devices, one after the other."""

from __future__ import annotations

import torch
from torch import nn

import devtrace


def test_a_module_moved_inside_the_trace_is_not_taken_for_one_on_two_devices() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        model = nn.Linear(8, 2).to("cuda")
        model(torch.randn(4, 8).to("cuda")).sum().backward()
    assert [finding for finding in recording.report.findings if finding.severity != "note"] == []
