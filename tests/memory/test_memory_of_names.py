"""The memory of a notebook's devices: its sums, who holds most by name, and nothing that a look keeps alive."""

from __future__ import annotations

import argparse
import asyncio
import collections
import functools
import gc
import queue
import sys
import weakref
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.memory.inventory import listing_with_memory
from devtrace.memory.traversal import inside, may_enter
from devtrace.notebook.inventory.inventory import drain

MIB = 1 << 20
HIDDEN: list[torch.Tensor] = []


def memory(**names: Any) -> dict[str, Any]:
    found = drain(listing_with_memory(names, simulated=True))
    return {row["device"]: row["memory"] for row in found["devices"] if "memory" in row}


def holders(row: dict[str, Any]) -> dict[str, int]:
    return {each["what"]: each["bytes"] for each in row["holders"]}


def test_each_byte_in_use_has_the_name_that_keeps_it() -> None:
    with devtrace.simulate("cuda:2,1GB"):
        net = nn.Linear(512, 512, device="cuda")
        adam = torch.optim.Adam(net.parameters())
        net(torch.ones(8, 512, device="cuda")).sum().backward()
        adam.step()
        feature = net(torch.ones(512, 512, device="cuda"))
        bank = {"old": [torch.ones(512, 1024, device="cuda:1")]}
        found = memory(net=net, adam=adam, feature=feature, bank=bank)
    assert {each: row["limit"] for each, row in found.items()} == {"cuda:0": 1 << 30, "cuda:1": 1 << 30}
    assert found["cuda:1"]["used"] == 2 * MIB
    assert holders(found["cuda:1"]) == {"what `bank` holds": 2 * MIB}
    assert sum(holders(found["cuda:0"]).values()) == found["cuda:0"]["used"]
    assert list(holders(found["cuda:0"])) == [
        "the optimizer state in `adam`",
        "the parameters of `net`",
        "the gradients of `net`",
        "what `feature` holds",
        "what `feature` keeps for backward",
    ]


def test_a_device_without_a_limit_has_its_sums_too() -> None:
    with devtrace.simulate("cuda:1"):
        x = torch.ones(1 << 18, device="cuda")
        del x
        y = torch.ones(1 << 17, device="cuda")
        found = memory(y=y)
    assert found == {
        "cuda:0": {
            "used": MIB // 2,
            "highest": MIB,
            "limit": 0,
            "holders": [{"what": "what `y` holds", "bytes": MIB // 2}],
        }
    }


def test_what_no_name_leads_to_is_apart_from_what_an_error_keeps() -> None:
    with devtrace.simulate("cuda:1,1GB"):
        HIDDEN.append(torch.ones(1 << 18, device="cuda"))

        def fails() -> None:
            kept = torch.ones(1 << 19, device="cuda")
            raise ValueError(kept.shape)

        try:
            fails()
        except ValueError as error:
            sys.last_value = error
        try:
            assert holders(memory()["cuda:0"]) == {
                "tensors in the traceback that `sys.last_value` keeps": 2 * MIB,
                "memory that no name leads to": MIB,
            }
        finally:
            del sys.last_value
            HIDDEN.clear()


def test_a_listing_that_is_given_up_keeps_nothing_alive() -> None:
    with devtrace.simulate("cuda:1,1GB"):
        x = torch.ones(4, device="cuda")
        seen = weakref.ref(x)
        counted = sys.getrefcount(x)
        names = {"x": x}
        for steps_taken in range(8):
            steps = listing_with_memory(names, simulated=True)
            for _ in zip(range(steps_taken), steps, strict=False):
                pass
            steps.close()
        drain(listing_with_memory(names, simulated=True))
        assert sys.getrefcount(x) == counted + 1
        names.clear()
        gc.collect()
        del x
        assert seen() is None
        assert torch.cuda.memory_allocated() == 0


def test_nothing_is_asked_where_no_device_counts_its_memory() -> None:
    assert memory(x=torch.ones(3)) == {}


TENSOR = torch.ones(3)


def filled(kind: Any, *, put: str = "put") -> Any:
    made = kind()
    getattr(made, put)(TENSOR)
    return made


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (filled(queue.Queue), ""),
        (filled(queue.LifoQueue), ""),
        (filled(queue.SimpleQueue), ""),
        (filled(asyncio.Queue, put="put_nowait"), ""),
        (filled(Future, put="set_result"), ""),
        (collections.UserList([TENSOR]), ""),
        (SimpleNamespace(x=TENSOR), ".x"),
        (argparse.Namespace(x=TENSOR), ".x"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_container_of_pythons_own_leads_to_what_was_put_there(value: Any, step: str) -> None:
    assert may_enter(value)
    assert [text for text, found in inside(value) if found is TENSOR] == [step]


def test_a_partial_leads_to_its_arguments() -> None:
    (given,) = [found for text, found in inside(functools.partial(print, TENSOR)) if text == ".args"]
    assert given[0] is TENSOR
