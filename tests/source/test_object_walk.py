"""What an object holds is found in one way, whatever holds it, and without a line of anybody's code."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import torch
from torch import nn

from devtrace.diagnosis.evidence.access_paths import Walk
from devtrace.source.object_walk import members, registered, stored
from devtrace.source.safe_values import instance_dict


def found(owner: Any) -> dict[str, str]:
    return {reference.text: reference.kind for reference in members(owner)}


class Point(NamedTuple):
    x: Any
    y: Any


class Slotted:
    __slots__ = ("empty", "full")

    def __init__(self) -> None:
        self.full = [1]


class Shared:
    table = torch.ones(2)
    settings = ([1],)

    def __init__(self) -> None:
        self.own = [1]
        self.count = 3


class Net(nn.Module):
    shift = torch.zeros(2)

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
        self.mask = torch.ones(2)
        self.extra = [nn.Linear(2, 2)]


def test_items_have_the_text_that_source_writes() -> None:
    things: list[Any] = [[], [], []]
    assert found(things) == found(tuple(things)) == found(deque(things)) == dict.fromkeys(("[0]", "[1]", "[2]"), "item")
    kinds: tuple[Any, ...] = (dict, OrderedDict, functools.partial(defaultdict, None))
    for kind in kinds:
        assert found(kind({"a": [], 1: []})) == {'["a"]': "item", "[1]": "item"}
    assert found(Point([], [])) == {".x": "attribute", ".y": "attribute"}


def test_numbers_texts_and_imported_modules_lead_nowhere() -> None:
    assert found([1, "a", None, sys, 2.0, len]) == {}


def test_attributes_slots_and_shared_containers_of_a_class_are_members() -> None:
    assert found(Slotted()) == {".full": "attribute"}
    assert found(Shared()) == {".own": "attribute", ".table": "attribute", ".settings": "attribute"}


def test_a_module_has_what_it_registers_and_what_it_does_not_by_different_kinds() -> None:
    assert found(Net()) == {
        ".scale": "parameter",
        ".mean": "buffer",
        ".layer": "module",
        ".mask": "attribute",
        ".extra": "attribute",
        ".shift": "attribute",
    }


def test_hooks_and_the_like_that_torch_keeps_in_a_module_are_none_of_its_members() -> None:
    net, kept = nn.Linear(2, 2, bias=False), torch.ones(1)
    net.register_forward_hook(lambda *_: kept)
    assert found(net) == {".weight": "parameter"}


def test_what_a_function_or_a_method_brings_along_is_a_member() -> None:
    table, net = torch.ones(2), Net()
    assert found(lambda: table) == {":table": "closure"}
    assert found(net.forward) == {".__self__": "attribute"}
    bound = functools.partial(torch.add, table, other=[])
    assert found(bound) == {".keywords": "attribute", ".args": "attribute"}


def test_an_optimizers_state_is_keyed_by_its_tensor() -> None:
    weight = torch.ones(2)
    reference = next(members({weight: {"step": torch.ones(1)}}))
    assert (reference.kind, reference.key is weight) == ("state", True)


def test_subclasses_of_containers_are_read_as_the_containers_that_they_are() -> None:
    class Trap(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError("__iter__ ran")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"__getattr__({name}) ran")

    trap = Trap([[]])
    vars(trap)["note"] = []
    assert found(trap) == {"[0]": "item", ".note": "attribute"}


def test_a_dictionary_of_attributes_that_is_the_users_own_class_is_not_asked() -> None:
    class Attributes(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("items ran")

        def get(self, *args: Any) -> Any:
            raise AssertionError("get ran")

    owner = Shared()
    owner.__dict__ = Attributes(own=[1])
    assert instance_dict(owner) == {"own": [1]}
    assert ".own" in found(owner)


def test_only_the_first_items_are_looked_at_where_that_is_asked_for() -> None:
    assert [reference.key for reference in stored([[]] * 9, most=2)] == [0, 1]
    assert [reference.key for reference in stored({"a": [], "b": [], "c": []}, most=2)] == ["a", "b"]


def test_what_moves_with_a_module_has_its_path() -> None:
    assert [path for path, _ in registered(nn.Sequential(Net(), nn.Linear(2, 2, bias=False)))] == [
        "0.scale",
        "0.mean",
        "0.layer.weight",
        "1.weight",
    ]


def test_the_walk_works_where_torch_was_never_imported() -> None:
    program = (
        "import sys; from devtrace.source.object_walk import members\n"
        "class A:\n    def __init__(self): self._modules = self._parameters = {'x': []}\n"
        "print([r.text for r in members(A())], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['.x', '.x'] False\n"


class Peer:
    """One of several objects that all know each other, as a trainer, its model, callbacks and logger do."""

    peers: tuple[Peer, ...] = ()


def test_names_through_objects_that_know_each_other_are_few_and_the_shortest() -> None:
    peers = [Peer() for _ in range(14)]
    for peer in peers:
        for number, other in enumerate(peers):
            if other is not peer:
                setattr(peer, f"knows{number}", other)
    table = torch.ones(2)
    peers[0].__dict__["table"] = table
    names = Walk([{"trainer": (peers[0], "variable"), "logger": (peers[1], "variable")}]).names(table)
    assert [name.text for name in names[:3]] == ["trainer.table", "logger.knows0.table", "logger.knows2.knows0.table"]


def test_every_name_of_a_shared_parameter_is_found() -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(3, 2), "head": nn.Linear(2, 3)})
    model["head"].weight = model["embed"].weight
    names = Walk([{"model": (model, "variable"), "tied": (model["head"], "variable")}]).names(model["embed"].weight)
    assert [name.text for name in names] == ["tied.weight", "model.head.weight", "model.embed.weight"]
