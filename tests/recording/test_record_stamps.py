"""Which tensor is which."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import pytest
import torch

import devtrace
from devtrace.recording.columns import stamps


def test_this_torch_keeps_what_is_on_a_storage() -> None:
    assert stamps.storages_keep_attributes()


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
        past = stamps.shorten((site, torch.device("cpu"), torch.float32, past))
    length = 0
    while past is not None:
        past, length = past[3], length + 1
    assert length == stamps.LONGEST_PAST


def test_a_sparse_tensor_is_known_again() -> None:
    with devtrace.record() as recording:
        x = torch.eye(2).to_sparse()
        x * 2
    last = recording.trace.ops[-1]
    assert last.inputs[0].producer is not None


def test_where_storages_forget_tensors_are_distinguished_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "storages_keep_attributes", lambda: False)
    x = torch.ones(2)
    stamps.put(x, (-1, {}, 3, None))
    assert stamps.get(x)[2] == 3
    assert stamps.get(x.view(2)) is stamps.UNSTAMPED


def rows_of(*tensors: torch.Tensor) -> list[int]:
    """Return the rows that the inputs of `sin` of each tensor have."""
    with devtrace.record() as recording:
        for tensor in tensors:
            tensor.sin()
    return [op.inputs[0].id for op in recording.trace.ops]


@pytest.mark.parametrize(
    "parts",
    [
        lambda x: (x[0], x[1]),
        lambda x: x.unbind(),
        lambda x: x.split(1),
        lambda x: (x[0].view(3, 1), x[1].view(3, 1), x[2].view(3, 1)),
        lambda x: (x[:, 0], x[0, :]),
        lambda x: (x[0:1].expand(2, 3), x[1:2].expand(2, 3)),
    ],
)
def test_parts_of_a_tensor_are_distinguished(parts: Callable[[torch.Tensor], Sequence[torch.Tensor]]) -> None:
    with devtrace.record() as recording:
        for part in parts(torch.ones(3, 3)):
            part.sin()
    seen = [op.inputs[0].id for op in recording.trace.ops if op.name == "aten.sin"]
    assert len(set(seen)) == len(seen) > 1
    made_before = rows_of(*parts(torch.ones(3, 3)))
    assert len(set(made_before)) == len(made_before)


def test_the_same_part_is_one_tensor() -> None:
    x = torch.ones(3, 3)
    part = x[1]
    rows = rows_of(x, part, x[1], part.detach(), part.view(3), x[0], part)
    assert rows[1] == rows[2] == rows[3] == rows[4] == rows[6]
    assert len({rows[0], rows[1], rows[5]}) == 3


def test_a_tensor_turned_is_still_that_tensor() -> None:
    """A square's transpose has its shape, its data and its line of birth: what is said of one is true of the other."""
    w = torch.ones(3, 3)
    assert len(set(rows_of(w, w.t(), w.mT, w.detach()))) == 1


def test_what_replaced_a_part_is_that_part() -> None:
    with devtrace.record() as recording:
        x = torch.zeros(2, 3)
        x[1].add_(1)
        x[1].sin()
    add, sine = recording.trace.ops[-3], recording.trace.ops[-1]
    assert (add.name, sine.name) == ("aten.add_.Tensor", "aten.sin")
    assert add.outputs[0].id == sine.inputs[0].id
