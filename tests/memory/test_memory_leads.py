"""What Python's own containers hold of a program's tensors is found, by no name that the program did not write."""

from __future__ import annotations

import argparse
import asyncio
import collections
import functools
import queue
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from devtrace.memory.traversal import inside, may_enter

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
