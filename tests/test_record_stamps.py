"""Which tensor is which."""

from __future__ import annotations

import pickle

import pytest
import torch

import devtrace
from devtrace.record import stamps


def test_this_torch_keeps_what_is_on_a_storage() -> None:
    assert stamps._kept()


def test_a_stamp_is_shared_by_views_and_not_by_copies() -> None:
    x = torch.ones(4)
    stamps.put(x, (-1, {}, 7, None))
    assert stamps.get(x.view(2, 2).detach().data)[2] == 7
    assert stamps.get(torch.nn.Parameter(x))[2] == 7
    assert stamps.get(x.clone()) is stamps.UNSTAMPED
    assert stamps.get(pickle.loads(pickle.dumps(x))) is stamps.UNSTAMPED


def test_a_past_does_not_grow_for_ever() -> None:
    past = None
    for site in range(100):
        past = stamps.shorten((site, torch.device("cpu"), past))
    length = 0
    while past is not None:
        past, length = past[2], length + 1
    assert length == stamps.LONGEST_PAST


def test_a_sparse_tensor_is_known_again() -> None:
    with devtrace.record() as recording:
        x = torch.eye(2).to_sparse()
        x * 2
    last = recording.trace.ops[-1]
    assert last.inputs[0].producer is not None


def test_where_storages_forget_tensors_are_told_apart_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "_kept", lambda: False)
    x = torch.ones(2)
    stamps.put(x, (-1, {}, 3, None))
    assert stamps.get(x)[2] == 3
    assert stamps.get(x.view(2)) is stamps.UNSTAMPED
